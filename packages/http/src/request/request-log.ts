import type { FastifyBaseLogger } from 'fastify'
import type { AnsweredRequest } from '../routes/metrics-route.ts'

/** What the log says about a request. What is missing or `undefined` is left out of its line. */
export interface LoggedRequest extends AnsweredRequest {
  readonly reqId: string
  /** The address of the client. */
  readonly client: string | undefined
  /** The number in the body of a failure. */
  readonly error?: number | undefined
  /** The name of the token that admitted it. */
  readonly token?: string
  /** As text: programs that read logs round large integers. */
  readonly plantId?: string | undefined
  readonly traceId?: string | undefined
}

export type RequestLog = (answered: LoggedRequest) => void

/** Writes the one line of a request, and counts it. */
export function createRequestLog(
  logger: FastifyBaseLogger,
  onAnswer: (answered: AnsweredRequest) => void,
): RequestLog {
  return answered => {
    logger.info({ ...answered, ms: Math.round(answered.ms * 1000) / 1000 }, 'answered')
    onAnswer(answered)
  }
}

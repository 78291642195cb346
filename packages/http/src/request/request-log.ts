import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from 'fastify'
import type { RequestTrace } from './request-trace.ts'

/** A request that was answered, failures included. */
export interface AnsweredRequest {
  /** `undefined` where it could not be read. */
  readonly method: string | undefined
  /** The pattern of its path; `undefined` where there is nothing at the path. */
  readonly route: string | undefined
  readonly status: number
  /** From the arrival of its header section until the answer was handed over. */
  readonly ms: number
}

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

/** Logs a request once its answer has been handed over, or can't be any more. Fastify tells only of the former. */
export function logOnceAnswered(
  request: FastifyRequest,
  reply: FastifyReply,
  logRequest: RequestLog,
  trace: RequestTrace | undefined,
): void {
  const log = () => {
    const { method, routeOptions, tokenName, plantId } = request
    const { statusCode: status, elapsedTime: ms } = reply
    const route = routeOptions.url
    trace?.end({ method, route, status })
    logRequest({
      reqId: request.id,
      client: request.ip,
      method,
      route,
      status,
      error: request.errorNumber,
      token: tokenName,
      plantId: plantId?.toString(),
      traceId: trace?.traceId,
      ms,
    })
  }
  if (reply.raw.destroyed) log()
  else reply.raw.on('close', log)
}

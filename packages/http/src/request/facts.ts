import type { AccessError } from '@plant-store/access'
import type { FastifyRequest } from 'fastify'

export const requestIdField = 'x-request-id'

/**
 * A request with an answer, failures included. These are the members of its log line,
 * with what {@link Facts.logFields} adds. Those that are `undefined` are left out.
 */
export interface AnsweredRequest {
  readonly reqId: string
  readonly client: string | undefined
  /** `undefined` if the request could not be parsed. */
  readonly method: string | undefined
  /** The route's path pattern. `undefined` if no route matches. */
  readonly route: string | undefined
  readonly status: number
  readonly error: number | undefined
  /** The name of the token's holder, never the token. */
  readonly token?: string | undefined
  /** Why the token was refused. */
  readonly reason?: string | undefined
  readonly traceId?: string | undefined
  /** The time from the end of the header section until the answer is handed over. */
  readonly ms: number
}

export interface RequestTrace {
  readonly traceId?: string
  /** Runs the handler within the trace. */
  run(handle: () => void): void
  end(answered: Pick<AnsweredRequest, 'method' | 'route' | 'status'>): void
}

/**
 * Facts about a request that hooks and handlers note for its log line and its failure.
 */
class Facts {
  /** When its header section had arrived, by `performance.now`. */
  startedMs: number | undefined
  /** The path pattern of its route. */
  route: string | undefined
  trace: RequestTrace | undefined
  /** The name of the admitted holder. */
  holderName: string | undefined
  /** Why the gate refused. */
  accessError: AccessError | undefined
  /**
   * More members of the log line: the id of an entity, as a text, which programs that
   * read logs do not round, or the counts of a batch.
   */
  logFields: Readonly<Record<string, string | number>> | undefined
  errorNumber: number | undefined
  /** The end of the message of a failure, because changes may have been made. */
  failureSuffix: string | undefined
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Use {@link factsOf}. `null` until the first fact. */
    facts: Facts | null
  }
}

export function factsOf(request: Pick<FastifyRequest, 'facts'>): Facts {
  request.facts ??= new Facts()
  return request.facts
}

import type { AccessError } from '@plant-store/access'
import type { FastifyRequest } from 'fastify'

export const requestIdField = 'x-request-id'

/**
 * A request with an answer, failures included. These are the members of its log line, with
 * what {@link Notes.logFields} adds. Those that are `undefined` are left out.
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
  /** From the end of the header section until the answer is handed over. */
  readonly ms: number
}

export interface RequestTrace {
  readonly traceId?: string
  /** Runs the handler within the trace. */
  run(handle: () => void): void
  end(answered: Pick<AnsweredRequest, 'method' | 'route' | 'status'>): void
}

/** What hooks and handlers note on a request for its log line and its failure. */
interface Notes {
  /** When its header section had arrived, by `performance.now`. */
  startedMs?: number
  trace?: RequestTrace | undefined
  /** The name of the admitted holder. */
  holderName?: string
  /** Why the gate refused. */
  refusal?: AccessError
  /**
   * More members of the log line: the id of an entity, as a text, which programs that read
   * logs do not round, or the counts of a batch.
   */
  logFields?: Readonly<Record<string, string | number>>
  errorNumber?: number
  /** What a failure must add to its message, as changes may have been made. */
  failureSuffix?: string
}

/** A symbol does not collide with properties of Fastify. */
const noted = Symbol('notes')

/** Any request: its notes do not depend on the types of its route. */
type AnyRequest = Pick<FastifyRequest, 'id'> & { [noted]?: Notes }

export function notesOf(request: AnyRequest): Notes {
  request[noted] ??= {}
  return request[noted]
}

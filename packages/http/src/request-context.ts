import type { AccessError } from '@plant-store/access'
import type { FastifyContextConfig } from 'fastify'

/** What hooks and handlers note on a request for its log line and its failure. Symbols do not collide with properties of Fastify. */

export const startedMs = Symbol('startedMs')
export const routeConfig = Symbol('routeConfig')
export const trace = Symbol('trace')
export const holderName = Symbol('holderName')
export const accessError = Symbol('accessError')
export const logFields = Symbol('logFields')
export const errorNumber = Symbol('errorNumber')
export const failureSuffix = Symbol('failureSuffix')

export const requestIdField = 'x-request-id'

/**
 * A request with an answer, failures included. These are the members of its log line, with what {@link logFields} adds.
 * Those that are `undefined` are left out.
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

declare module 'fastify' {
  interface FastifyRequest {
    /** When its header section had arrived, by `performance.now`. */
    [startedMs]?: number
    /** Read once, as Fastify makes an object of all options each time. It has no `url` if no route matches. */
    [routeConfig]?: FastifyContextConfig & { readonly url?: string }
    [trace]?: RequestTrace | undefined
    /** The name of the admitted holder. */
    [holderName]?: string
    /** Why the gate refused. */
    [accessError]?: AccessError
    /**
     * More members of the log line: the id of an entity, as a text, which programs that read logs do not round, or the
     * counts of a batch.
     */
    [logFields]?: Readonly<Record<string, string | number>>
    [errorNumber]?: number
    /** What a failure must add to its message, as changes may have been made. */
    [failureSuffix]?: string
  }
}

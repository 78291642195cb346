import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { AnsweredRequest } from './request-log.ts'

/** Begins the trace of a request, once its header section has arrived. */
export type RequestTracer = (request: {
  readonly method: string
  readonly headers: IncomingHttpHeaders
}) => RequestTrace

export interface RequestTrace {
  /** Names the trace in the log. */
  readonly traceId?: string
  /** Runs what answers the request, so that what it calls can be told to belong to it. */
  run(handle: () => void): void
  end(answered: Omit<AnsweredRequest, 'ms'>): void
}

/** @returns the trace of a request */
export function traceRequests(
  app: FastifyInstance,
  trace: RequestTracer,
): (request: FastifyRequest) => RequestTrace | undefined {
  const traces = new WeakMap<FastifyRequest, RequestTrace>()
  app.addHook('onRequest', (request, _reply, done) => {
    traces.set(request, trace(request))
    done()
  })
  // Only here: what is known of the caller is lost while a body is read.
  app.addHook('preHandler', (request, _reply, done) => {
    const begun = traces.get(request)
    if (begun === undefined) done()
    else begun.run(done)
  })
  return request => traces.get(request)
}

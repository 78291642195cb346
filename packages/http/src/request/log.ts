import { randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import {
  type AnsweredRequest,
  factsOf,
  type RequestTrace,
  requestIdField,
} from './facts.ts'
import { clientOf } from './trusted-proxies.ts'

/** Gets each answered request, to write its log line and to count it. */
export type OnAnswer = (answered: AnsweredRequest) => void

/** Starts the trace of a request, once its header section has arrived. */
export type RequestTracer = (request: {
  readonly method: string
  readonly headers: IncomingHttpHeaders
}) => RequestTrace

/** Gives every request its id, and traces and logs it. */
export function observeRequests(
  app: FastifyInstance,
  onAnswer: OnAnswer,
  begin: RequestTracer | undefined,
): void {
  app.addHook('onRequest', (request, reply, done) => {
    const facts = factsOf(request)
    facts.startedMs = performance.now()
    facts.trace = begin?.(request)
    reply.header(requestIdField, request.id)
    // Read the address now: the socket caches it, and has none once the client has left.
    void request.ip
    done()
  })
  if (begin !== undefined) {
    // It runs after the body is read, because reading loses the async context.
    app.addHook('preHandler', (request, _reply, done) => {
      // The hook above has begun it.
      factsOf(request).trace?.run(done)
    })
  }
  app.addHook('onSend', (request, reply, _payload, done) => {
    reportOnceAnswered(request, reply, onAnswer)
    done()
  })
}

/**
 * Reports the request once its answer was handed over, or can no longer be. Fastify's
 * onResponse misses the second case.
 */
export function reportOnceAnswered(
  request: FastifyRequest,
  reply: FastifyReply,
  onAnswer: OnAnswer,
): void {
  const report = () => {
    const { id, method } = request
    const status = reply.statusCode
    const endedMs = performance.now()
    const facts = factsOf(request)
    const { startedMs = endedMs, route, trace, accessError } = facts
    // A path that does not exist is answered before a missing scope.
    const isRefused = status === 401 || status === 403
    trace?.end({ method, route, status })
    onAnswer({
      reqId: id,
      client: clientOf(request),
      method,
      route,
      status,
      error: facts.errorNumber,
      token: facts.holderName ?? accessError?.holder,
      reason: isRefused ? accessError?.message : undefined,
      ...facts.logFields,
      traceId: trace?.traceId,
      ms: Math.round((endedMs - startedMs) * 1000) / 1000,
    })
  }
  if (reply.raw.destroyed) {
    report()
  } else {
    reply.raw.on('close', report)
  }
}

const prefix = `${randomBytes(8).toString('base64url')}-`
let count = 0

/**
 * Returns the id that the client sent if it is safe in a log and a header. Otherwise
 * returns a new one, which is unique among all threads and processes.
 */
export function requestId(request?: IncomingMessage): string {
  const given = request?.headers[requestIdField] as string | undefined
  if (given !== undefined && /^[\w.:/+=@-]{1,128}$/.test(given)) {
    return given
  }
  count += 1
  return prefix + count.toString(36)
}

import { randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { AccessError } from '@plant-store/access'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import {
  type AnsweredRequest,
  notesOf,
  type RequestTrace,
  requestIdField,
} from './notes.ts'
import { clientOf } from './trusted-proxies.ts'

/** Gets each answered request, to write its log line and to count it. */
export type RequestLog = (answered: AnsweredRequest) => void

/** Starts the trace of a request, once its header section has arrived. */
export type RequestTracer = (request: {
  readonly method: string
  readonly headers: IncomingHttpHeaders
}) => RequestTrace

/** Names, traces and logs every request. */
export function logRequests(
  app: FastifyInstance,
  logRequest: RequestLog,
  begin?: RequestTracer,
): void {
  app.addHook('onRequest', (request, reply, done) => {
    const notes = notesOf(request)
    notes.startedMs = performance.now()
    notes.trace = begin?.(request)
    reply.header(requestIdField, request.id)
    // Read the address now: the socket caches it, and has none once the client has left.
    void request.ip
    done()
  })
  if (begin !== undefined) {
    // It runs after the body is read, because reading loses the async context.
    app.addHook('preHandler', (request, _reply, done) => {
      const { trace } = notesOf(request)
      if (trace === undefined) {
        done()
      } else {
        trace.run(done)
      }
    })
  }
  app.addHook('onSend', (request, reply, _payload, done) => {
    logOnceAnswered(request, reply, logRequest)
    done()
  })
}

/**
 * Logs a request once its answer was handed over, or can no longer be. Fastify's
 * onResponse misses the second case.
 */
export function logOnceAnswered(
  request: FastifyRequest,
  reply: FastifyReply,
  logRequest: RequestLog,
): void {
  const log = () => {
    const { id, method } = request
    const status = reply.statusCode
    const endedMs = performance.now()
    const notes = notesOf(request)
    const { startedMs = endedMs, route, trace, refusal } = notes
    trace?.end({ method, route, status })
    logRequest({
      reqId: id,
      client: clientOf(request),
      method,
      route,
      status,
      error: notes.errorNumber,
      token: notes.holderName ?? refusal?.holder,
      reason: reasonOf(refusal, status),
      ...notes.logFields,
      traceId: trace?.traceId,
      ms: Math.round((endedMs - startedMs) * 1000) / 1000,
    })
  }
  if (reply.raw.destroyed) {
    log()
  } else {
    reply.raw.on('close', log)
  }
}

/** A path that does not exist is answered before a missing scope. */
function reasonOf(refusal: AccessError | undefined, status: number): string | undefined {
  if (status !== 401 && status !== 403) {
    return undefined
  }
  return refusal?.message
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

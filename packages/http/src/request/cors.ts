import type { IncomingMessage, RequestListener } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { requestIdField } from './facts.ts'
import { allowedEverywhere } from './paths.ts'

/**
 * Tracing tools add fields of their own, which `*` allows, such as `sentry-trace`. It
 * never includes Authorization (Fetch standard).
 */
const allowedHeaders = `authorization, content-type, if-match, if-none-match, ${requestIdField}, traceparent, tracestate, baggage, *`
const exposedHeaders = `etag, link, total-count, www-authenticate, retry-after, allow, ${requestIdField}`
/** How long a browser may cache a preflight. None caches it for more than two hours. */
const preflightSeconds = '7200'

/**
 * Lets pages of these origins call the service (CORS, Fetch standard). It wraps all that
 * sees a request, because a page can read an error only with these headers. Pages send
 * the token themselves, so credentials stay off.
 *
 * @param origins as browsers write them: scheme, host, and port if it is not the default
 */
export function allowOrigins(
  origins: readonly string[],
  handle: RequestListener,
): RequestListener {
  if (origins.length === 0) {
    return handle
  }
  const allowed = new Set(origins)
  return (request, response) => {
    response.setHeader('vary', 'origin')
    const { origin } = request.headers
    if (origin !== undefined && allowed.has(origin)) {
      response.setHeader('access-control-allow-origin', origin)
      if (!isPreflight(request)) {
        response.setHeader('access-control-expose-headers', exposedHeaders)
      }
    }
    handle(request, response)
  }
}

const isPreflight = ({ method, headers }: IncomingMessage) =>
  method === 'OPTIONS' && headers['access-control-request-method'] !== undefined

/** Answers preflights without a token, as browsers send none. */
export function answerPreflights(app: FastifyInstance): void {
  app.addHook('onRequest', ({ raw }, reply, done) => {
    if (!isPreflight(raw) || !reply.hasHeader('access-control-allow-origin')) {
      return done()
    }
    reply
      .code(204)
      .headers({
        'access-control-allow-methods': allowedEverywhere,
        'access-control-allow-headers': allowedHeaders,
        'access-control-max-age': preflightSeconds,
      })
      .send()
  })
}

import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { toFailure } from './errors/error-response.ts'
import { lingerTimeoutMs } from './limits.ts'
import { changedTagAdvice } from './request/conditions.ts'
import { factsOf, requestIdField } from './request/facts.ts'
import { bodyOf } from './wire/body.ts'
import { type Budget, countedBytesMin } from './wire/budget.ts'

/**
 * Finishes what handlers return, before it is sent.
 *
 * @param budget counts the memory that long answers hold
 */
export function finishAnswers(app: FastifyInstance, budget: Budget): void {
  app.addHook<unknown>('onSend', (request, reply, payload, done) => {
    keepFromCaches(reply)
    const isHead = request.method === 'HEAD'
    if (reply.statusCode === 204 || reply.statusCode === 304) {
      reply.removeHeader('content-type')
      // Fastify would announce 0 bytes for a HEAD without a stream (RFC 9110, 8.6).
      done(null, isHead ? Readable.from([]) : null)
      return
    }

    dropCharsetOfJson(reply)
    const isRead = isHead || request.method === 'GET'
    if (typeof payload !== 'string' || !isRead) {
      done()
      return
    }
    done(null, countAnswer(reply, payload, budget))
  })
}

/**
 * Forbids to keep what the store says. The files of /browse and /docs have a
 * Cache-Control of their own, which lets browsers keep them. So do failures.
 */
function keepFromCaches(reply: FastifyReply): void {
  if (!reply.hasHeader('cache-control')) {
    reply.header('cache-control', 'no-store')
    reply.header('x-content-type-options', 'nosniff')
  }
}

/** Fastify adds a charset, which JSON does not have (RFC 8259, 11). */
function dropCharsetOfJson(reply: FastifyReply): void {
  if (reply.getHeader('content-type') === 'application/json; charset=utf-8') {
    reply.header('content-type', 'application/json')
  }
}

/**
 * Returns the text, as bytes if it is long.
 *
 * @throws RequestError `too-many-bytes`
 */
function countAnswer(reply: FastifyReply, text: string, budget: Budget): string | Buffer {
  if (text.length < countedBytesMin) {
    // Releases what a page has reserved.
    budget.setHeld(reply.raw, 0)
    return text
  }
  const bytes = Buffer.from(text)
  budget.setHeld(reply.raw, bytes.length)
  return bytes
}

/**
 * Makes an answer the last of its connection if it is sent before the body has arrived.
 * Its end waits until the client stops sending, because closing with unread bytes could
 * lose the answer.
 */
export function closeAfterEarlyAnswers(app: FastifyInstance): void {
  app.addHook('onSend', (request, reply, payload, done) => {
    const { raw, method } = request
    const body = bodyOf(raw)
    if (body === undefined || body.isEnded || raw.httpVersionMajor !== 1) {
      return done()
    }
    body.drop()
    // The bytes in the packet of the header section have arrived by then.
    setImmediate(() => {
      if (body.isEnded || raw.destroyed) {
        return done()
      }
      reply.header('connection', 'close')
      if (typeof payload !== 'string' || method === 'HEAD') {
        return done()
      }
      reply.header('content-length', Buffer.byteLength(payload))
      const rest = new Readable({ read() {} })
      rest.push(payload)
      const end = () => {
        clearTimeout(timer)
        rest.push(null)
      }
      const timer = setTimeout(end, lingerTimeoutMs)
      raw.once('close', end)
      done(null, rest)
    })
  })
}

/** Tells of failures that are worth a line in the log. */
export interface FailureLog {
  readonly error: (details: object, message: string) => void
  readonly debug: (details: object, message: string) => void
}

/** Returns Fastify's error handler. */
export function createErrorHandler(logger: FailureLog) {
  return (cause: unknown, request: FastifyRequest, reply: FastifyReply): void => {
    const { status, headers, body, isDefect } = toFailure(cause)
    const details = { reqId: request.id, err: cause }
    if (isDefect) {
      logger.error(details, 'failed to answer')
    } else if (status === 503) {
      // Clients can cause any number of these. The main thread logs the reason once.
      logger.debug(details, 'could not serve')
    }

    const facts = factsOf(request)
    facts.errorNumber = body.error
    const advice = status === 412 ? changedTagAdvice(request.headers['if-match']) : ''
    const message = `${body.message}${facts.failureSuffix ?? ''}${advice}`
    // Fastify closes after each fault of a body. `closeAfterEarlyAnswers` does only if
    // the rest of it is still on its way. What Node's response already has, stays.
    if (!reply.raw.hasHeader('connection')) {
      reply.removeHeader('connection')
    }
    reply
      .code(status)
      .headers({ ...headers, [requestIdField]: request.id })
      .type('application/json')
      // Without it, Fastify would add a charset.
      .serializer(JSON.stringify)
      .send({ error: body.error, message })
  }
}

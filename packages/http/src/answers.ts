import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { lingerTimeoutMs } from './limits.ts'
import { bodyOf } from './wire/body.ts'
import { type Budget, uncountedBytesMax } from './wire/budget.ts'

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

    // Fastify adds a charset, which JSON does not have (RFC 8259, 11).
    if (reply.getHeader('content-type') === 'application/json; charset=utf-8') {
      reply.header('content-type', 'application/json')
    }
    const isRead = isHead || request.method === 'GET'
    if (typeof payload !== 'string' || !isRead) {
      done()
      return
    }
    done(null, countAnswer(reply, payload, budget))
  })
}

/**
 * Forbids to keep what the store says. The files of /browse and /docs, and failures, have
 * a Cache-Control of their own.
 */
function keepFromCaches(reply: FastifyReply) {
  if (!reply.hasHeader('cache-control')) {
    reply.header('cache-control', 'no-store')
    reply.header('x-content-type-options', 'nosniff')
  }
}

/**
 * Returns the text, as bytes if it is long.
 *
 * @throws RequestError `too-many-bytes`
 */
function countAnswer(reply: FastifyReply, text: string, budget: Budget) {
  if (text.length < uncountedBytesMax) {
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
    if (body === undefined || body.isWhole || raw.httpVersionMajor !== 1) {
      return done()
    }
    body.drop()
    // The bytes in the packet of the header section have arrived by then.
    setImmediate(() => {
      if (body.isWhole || raw.destroyed) {
        return done()
      }
      reply.header('connection', 'close')
      if (typeof payload !== 'string' || method === 'HEAD') {
        return done()
      }
      reply.header('content-length', Buffer.byteLength(payload))
      const answer = new Readable({ read() {} })
      answer.push(payload)
      const end = () => {
        clearTimeout(timer)
        answer.push(null)
      }
      const timer = setTimeout(end, lingerTimeoutMs)
      raw.once('close', end)
      done(null, answer)
    })
  })
}

import { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import { lingerTimeoutMs } from '../limits.ts'
import { bodyOf } from './body.ts'

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

import { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import { lingerTimeoutMs } from '../limits.ts'
import { bodyOf } from './body.ts'

/**
 * Makes an answer that is sent before the body has arrived the last of its connection. Its end waits for the client to
 * stop sending: closing with unread bytes could lose the answer.
 */
export function endEarlyAnswers(app: FastifyInstance): void {
  app.addHook('onSend', (request, reply, payload, done) => {
    const { raw, method } = request
    const body = bodyOf(raw)
    if (body === undefined || body.isEnded || raw.httpVersionMajor !== 1) {
      return done()
    }
    body.drop()
    // What came in one packet with the header section has arrived by then.
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

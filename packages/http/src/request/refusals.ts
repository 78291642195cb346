import { STATUS_CODES } from 'node:http'
import { toFailure } from '../errors/error-response.ts'
import type { LogAndFormatRefusal } from '../wire/node-server.ts'
import { requestIdField } from './facts.ts'
import { type OnAnswer, requestId } from './log.ts'

/** Returns what answers a request that is refused before Fastify sees it. */
export function createRefusalAnswers(onAnswer: OnAnswer): LogAndFormatRefusal {
  return (error, { remoteAddress: client }, request) => {
    const { status, headers, body } = toFailure(error)
    const reqId = requestId(request)
    const content = JSON.stringify(body)
    onAnswer({
      reqId,
      client,
      method: request?.method,
      route: undefined,
      status,
      error: body.error,
      ms: 0,
    })
    const fields = {
      date: new Date().toUTCString(),
      ...headers,
      [requestIdField]: reqId,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(content),
      connection: 'close',
    }
    const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
    return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${content}`
  }
}

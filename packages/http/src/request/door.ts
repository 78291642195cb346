import type { IncomingMessage } from 'node:http'
import { isIPv6 } from 'node:net'
import { safeParse } from 'fast-content-type-parse'
import type { FastifyRequest } from 'fastify'
import { RequestError } from '../answer/failures.ts'

/**
 * Checks what the header section says of a body, where there is one that will be read.
 *
 * @throws RequestError when it is no JSON, encoded in a way that would have to be undone first, or part of a plant
 */
export function checkBody({ method, headers, raw }: FastifyRequest): void {
  // RFC 9110, 14.5: taken for the whole, a part would replace it.
  if (method === 'PUT' && headers['content-range'] !== undefined)
    throw new RequestError('partial-put', 'a plant is replaced as a whole: leave Content-Range out')
  if (method === 'GET' || method === 'HEAD') return
  if (headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0) {
    // Fastify looks for a parser wherever there is a media type.
    delete raw.headers['content-type']
    return
  }
  const coding = headers['content-encoding']
  if (coding !== undefined && coding.toLowerCase() !== 'identity') {
    throw new RequestError('unsupported-coding', 'the body must be sent without Content-Encoding', {
      'accept-encoding': 'identity',
    })
  }
  // Node unwraps chunks, and nothing that they are said to be wrapped in.
  const transfer = headers['transfer-encoding']
  if (transfer !== undefined && transfer.toLowerCase() !== 'chunked') {
    throw new RequestError(
      'unsupported-coding',
      'the body must be sent without a transfer coding but chunked',
    )
  }
  const { type, parameters } = safeParse(headers['content-type'] ?? '')
  const { charset = 'utf-8' } = parameters
  if (type !== 'application/json')
    throw new RequestError('unsupported-media-type', 'the media type of the body must be application/json')
  if (charset.toLowerCase() !== 'utf-8')
    throw new RequestError('unsupported-media-type', 'the body must be in UTF-8')
}

const singleFields = ['host', 'authorization', 'content-type', 'content-encoding']

/**
 * @throws RequestError `bad-host` unless there is one valid Host (RFC 9112, 3.2); `repeated-field` when it can't be known
 *   which of several values counts; `bad-request` for a version of HTTP that Node reads and does not speak;
 *   `expectation-failed`
 */
export function checkHeaders({
  rawHeaders,
  headers,
  httpVersion,
}: Pick<IncomingMessage, 'rawHeaders' | 'headers' | 'httpVersion'>): void {
  if (httpVersion !== '1.1' && httpVersion !== '1.0')
    throw new RequestError('bad-request', 'the version of HTTP must be 1.1 or 1.0')
  let seen = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const field = singleFields.indexOf((rawHeaders[at] as string).toLowerCase())
    if (field === -1) continue
    const bit = 1 << field
    if (seen & bit) {
      const message = `the header field ${singleFields[field]} is given more than once`
      throw new RequestError(field === 0 ? 'bad-host' : 'repeated-field', message)
    }
    seen |= bit
    if (field === 0 && !isHost(rawHeaders[at + 1] as string))
      throw new RequestError('bad-host', 'the header field host must be a host, with or without a port')
  }
  if (!(seen & 1) && httpVersion !== '1.0')
    throw new RequestError('bad-host', 'the header field host is missing')
  const { expect } = headers
  if (expect !== undefined && httpVersion === '1.1' && !/^100-continue$/i.test(expect)) {
    throw new RequestError('expectation-failed', `the expectation ${expect} can not be met`, {
      connection: 'close',
    })
  }
}

/** RFC 3986, 3.2.2. A comma may be part of a name there, but here two names have been joined. */
const hostForm = /^(?:\[([^\]]+)\]|(?:[\w.~!$&'()*+;=-]|%[\da-f]{2})+)(?::\d*)?$/i

function isHost(value: string): boolean {
  if (value === '') return true
  const form = hostForm.exec(value)
  if (form === null) return false
  const [, address] = form
  return address === undefined || (isIPv6(address) && !address.includes('%'))
}

import { isIPv6 } from 'node:net'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { RequestError } from '../errors/error-numbers.ts'
import { headerFieldsMax } from '../limits.ts'
import { authorityOf } from './paths.ts'

/**
 * Refuses requests whose header section is at fault, before the token is judged: first
 * the version, the number of fields, then Host, the framing of the body and the
 * expectation.
 */
export function checkHeaderSections(app: FastifyInstance): void {
  app.addHook('onRequest', (request, _reply, done) => {
    checkVersion(request)
    checkFieldCount(request)
    checkHost(request)
    checkFraming(request)
    checkExpectation(request)
    done()
  })
}

/** Refuses other versions, which Node parses but does not implement. */
function checkVersion({ raw }: FastifyRequest) {
  if (raw.httpVersion !== '1.1' && raw.httpVersion !== '1.0') {
    throw new RequestError('bad-request', 'the HTTP version must be 1.0 or 1.1')
  }
}

/**
 * Refuses too many fields, because Node 24 drops those above its limit without a word. A
 * condition could be among them.
 */
function checkFieldCount({ raw }: FastifyRequest) {
  if (raw.rawHeaders.length > 2 * headerFieldsMax) {
    const message = `there are more than ${headerFieldsMax} header fields`
    throw new RequestError('headers-too-large', message, { connection: 'close' })
  }
}

/**
 * Requires Host once, as a host with or without a port (RFC 9112, 3.2). Node joins
 * several, and no host has a comma. The host of an absolute target must be one too.
 */
function checkHost({ headers, raw, originalUrl }: FastifyRequest) {
  const { host } = headers
  if (host === undefined && raw.httpVersion !== '1.0') {
    throw new RequestError('bad-host', 'the header field host is missing')
  }
  if (host?.includes(',')) {
    throw new RequestError('bad-host', 'the header field host must have one value')
  }
  if (host !== undefined && !isHost(host)) {
    const message = 'the header field host must be a host, or a host, a colon and a port'
    throw new RequestError('bad-host', message)
  }
  const authority = authorityOf(originalUrl)
  if (authority !== undefined && (authority === '' || !isHost(authority))) {
    throw new RequestError('bad-host', 'the request target has no valid host')
  }
}

/** `uri-host [ ":" port ]` (RFC 3986, 3.2.2). The host may be empty. */
const hostPattern = /^(?:\[([\da-f:.]+)\]|(?:[\w.~!$&'()*+;=-]|%[\da-f]{2})*)(?::\d*)?$/i

function isHost(text: string) {
  // Most hosts are a name or an address of IPv4, which need no groups.
  if (!text.startsWith('[')) {
    return hostPattern.test(text)
  }
  return isIPv6(hostPattern.exec(text)?.[1] ?? '')
}

/**
 * Requires chunked as the last transfer coding. With any other, the end of the body is
 * unknown (RFC 9112, 6.3).
 */
function checkFraming({ headers }: FastifyRequest) {
  const codings = headers['transfer-encoding']
  if (codings === undefined) {
    return
  }

  const lastCoding = codings.split(',').at(-1)?.trim().toLowerCase()
  if (lastCoding !== 'chunked') {
    const message = 'chunked must be the last transfer coding'
    throw new RequestError('bad-request', message, { connection: 'close' })
  }
}

function checkExpectation(request: FastifyRequest) {
  const expectation = expectationOf(request)
  if (expectation === undefined || expectation.toLowerCase() === '100-continue') {
    return
  }
  const message = `the expectation ${expectation} cannot be met`
  throw new RequestError('expectation-failed', message, { connection: 'close' })
}

/**
 * Returns the value of Expect. A server must ignore it in HTTP/1.0 (RFC 9110, 10.1.1).
 */
export function expectationOf({ headers, raw }: FastifyRequest): string | undefined {
  if (raw.httpVersion === '1.0') {
    return undefined
  }
  return headers.expect
}

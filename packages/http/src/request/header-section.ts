import type { FastifyInstance, FastifyRequest } from 'fastify'
import { RequestError } from '../errors/request-error.ts'

/**
 * Refuses requests whose header section is at fault, before anything else looks at them:
 * first the version, then Host, the framing of the body and the expectation.
 */
export function checkHeaderSections(app: FastifyInstance): void {
  app.addHook('onRequest', (request, _reply, done) => {
    checkVersion(request)
    checkHost(request)
    checkFraming(request)
    checkExpectation(request)
    done()
  })
}

/** Refuses other versions, which Node parses but does not implement. */
function checkVersion({ raw }: FastifyRequest): void {
  if (raw.httpVersion !== '1.1' && raw.httpVersion !== '1.0') {
    throw new RequestError('bad-request', 'the HTTP version must be 1.0 or 1.1')
  }
}

/** Requires Host once (RFC 9112, 3.2). Node joins several, and no host has a comma. */
function checkHost({ headers, raw }: FastifyRequest): void {
  const { host } = headers
  if (host === undefined && raw.httpVersion !== '1.0') {
    throw new RequestError('bad-host', 'the header field host is missing')
  }
  if (host?.includes(',')) {
    throw new RequestError('bad-host', 'the header field host must have one value')
  }
}

/**
 * Requires chunked as the last transfer coding. With any other, the end of the body is
 * unknown (RFC 9112, 6.3).
 */
function checkFraming({ headers }: FastifyRequest): void {
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

function checkExpectation(request: FastifyRequest): void {
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

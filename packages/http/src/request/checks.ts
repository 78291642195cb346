import { isIPv6 } from 'node:net'
import { AccessError, type Scope, scopes } from '@plant-store/access'
import { safeParse } from 'fast-content-type-parse'
import type {
  FastifyContextConfig,
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
} from 'fastify'
import type { Budget } from '../budget.ts'
import { RequestError } from '../errors/failures.ts'
import { notesOf } from '../request-context.ts'
import type { Authenticate } from './authenticate.ts'
import { bodyOf } from './body.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    scope?: Scope | null
    /** The value of Allow, on a route that answers 405. */
    allowedMethods?: string
    /** Of a body that the route reads as it arrives. Other bodies are JSON and buffered. */
    streamedMediaType?: string
  }
}

/**
 * Checks the header section, the token and everything else before the body, of every request, in one order. The first
 * failure is the answer.
 *
 * @param budget counts the bodies
 */
export function checkRequests(
  app: FastifyInstance,
  authenticate: Authenticate,
  budget: Budget,
  bodyBytesMax: number,
): void {
  const checkRest = (
    request: FastifyRequest,
    reply: FastifyReply,
    refusal: Error | undefined,
  ) => {
    const { config = {} } = notesOf(request)
    checkRoute(request, config, refusal)
    if (hasBody(request, config)) {
      checkBody(request, config)
      bodyOf(request.raw)?.countWith(bytes => budget.setHeld(reply.raw, bytes))
    } else {
      // Fastify needs a parser for every media type, even without a body.
      delete request.raw.headers['content-type']
    }
    if (isContinued(request, config, bodyBytesMax)) {
      reply.raw.writeContinue()
    }
  }
  app.addHook('onRequest', (request, reply, done) => {
    try {
      checkHeaders(request)
      // A path without a route has no scope. Its answer is 404 whatever the scope, so any will do.
      const { scope = scopes[0] as Scope } = notesOf(request).config ?? {}
      const refusal = scope === null ? undefined : authenticate(request, scope)
      if (refusal instanceof Promise) {
        refusal.then(later => checkRest(request, reply, later)).then(() => done(), done)
        return
      }
      checkRest(request, reply, refusal)
    } catch (failure) {
      return done(failure as Error)
    }
    done()
  })
}

/** @throws RequestError */
function checkHeaders(request: FastifyRequest): void {
  checkVersion(request)
  checkFields(request)
  checkFraming(request)
  checkExpectation(request)
}

/** @throws RequestError, or the refusal of the token */
function checkRoute(
  { is404, method, headers }: FastifyRequest,
  { allowedMethods: allow }: FastifyContextConfig,
  refusal: Error | undefined,
): void {
  // A path or method that does not exist is 404 or 405, whatever the scope.
  const isForScope =
    refusal instanceof AccessError && refusal.code === 'insufficient-scope'
  if (refusal !== undefined && !isForScope) {
    throw refusal
  }
  if (is404) {
    throw new RequestError('no-such-path', 'there is nothing at this path')
  }
  if (allow !== undefined) {
    throw new RequestError(
      'method-not-allowed',
      `the methods of this path are ${allow}`,
      { allow },
    )
  }
  // A PUT of a part would be taken for the whole (RFC 9110, 14.5).
  if (method === 'PUT' && headers['content-range'] !== undefined) {
    throw new RequestError(
      'partial-put',
      'PUT replaces the whole resource: remove Content-Range',
    )
  }
  if (refusal !== undefined) {
    throw refusal
  }
}

/** @throws RequestError */
function checkBody({ headers }: FastifyRequest, config: FastifyContextConfig): void {
  const { 'content-encoding': contentCoding, 'transfer-encoding': transferCoding } =
    headers
  if (contentCoding !== undefined && contentCoding.toLowerCase() !== 'identity') {
    throw new RequestError(
      'unsupported-coding',
      'the body must be sent without Content-Encoding',
      {
        'accept-encoding': 'identity',
      },
    )
  }
  // Node decodes no other.
  if (transferCoding !== undefined && transferCoding.toLowerCase() !== 'chunked') {
    throw new RequestError(
      'unsupported-coding',
      'chunked is the only transfer coding accepted',
    )
  }
  const { streamedMediaType: wanted = 'application/json' } = config
  if (headers['content-type'] === wanted) {
    return
  }
  const { type, parameters } = safeParse(headers['content-type'] ?? '')
  const { charset = 'utf-8' } = parameters
  if (type !== wanted) {
    throw new RequestError(
      'unsupported-media-type',
      `the media type of the body must be ${wanted}`,
    )
  }
  if (charset.toLowerCase() !== 'utf-8') {
    throw new RequestError('unsupported-media-type', 'the body must be in UTF-8')
  }
}

function hasBody(
  { method, headers }: FastifyRequest,
  { streamedMediaType }: FastifyContextConfig,
): boolean {
  const isSent =
    headers['transfer-encoding'] !== undefined ||
    Number(headers['content-length'] ?? 0) > 0
  const isStreamed =
    streamedMediaType !== undefined && headers['content-type'] !== undefined
  return (isSent || isStreamed) && method !== 'GET' && method !== 'HEAD'
}

/** Node also parses versions that it does not implement. */
function checkVersion({ raw: { httpVersion } }: FastifyRequest): void {
  if (httpVersion !== '1.1' && httpVersion !== '1.0') {
    throw new RequestError('bad-request', 'the HTTP version must be 1.0 or 1.1')
  }
}

const singleFields = ['host', 'authorization', 'content-type', 'content-encoding']

/** Requires one valid Host (RFC 9112, 3.2), and no other single-value field twice. */
function checkFields({ raw: { rawHeaders, httpVersion } }: FastifyRequest): void {
  let seen = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const field = singleFields.indexOf((rawHeaders[at] as string).toLowerCase())
    if (field === -1) {
      continue
    }
    const bit = 1 << field
    if (seen & bit) {
      const message = `the header field ${singleFields[field]} occurs more than once`
      throw new RequestError(field === 0 ? 'bad-host' : 'repeated-field', message)
    }
    seen |= bit
    if (field === 0 && !isHost(rawHeaders[at + 1] as string)) {
      throw new RequestError(
        'bad-host',
        'the header field host must be a host with an optional port',
      )
    }
  }
  if (!(seen & 1) && httpVersion !== '1.0') {
    throw new RequestError('bad-host', 'the header field host is missing')
  }
}

/** Otherwise nobody knows where the body ends (RFC 9112, 6.3). */
function checkFraming({ raw: { headers } }: FastifyRequest): void {
  const last = headers['transfer-encoding']?.split(',').at(-1)?.trim().toLowerCase()
  if (last !== undefined && last !== 'chunked') {
    throw new RequestError('bad-request', 'chunked must be the last transfer coding', {
      connection: 'close',
    })
  }
}

/** HTTP/1.0 has no expectations. */
function expectation({
  raw: { headers, httpVersion },
}: FastifyRequest): string | undefined {
  return httpVersion === '1.0' ? undefined : headers.expect
}

function checkExpectation(request: FastifyRequest): void {
  const expected = expectation(request)
  if (expected !== undefined && !/^100-continue$/i.test(expected)) {
    throw new RequestError(
      'expectation-failed',
      `the expectation ${expected} cannot be met`,
      {
        connection: 'close',
      },
    )
  }
}

/** Whether an admitted request waits for 100 Continue and its body is not too large. */
function isContinued(
  request: FastifyRequest,
  { streamedMediaType }: FastifyContextConfig,
  bodyBytesMax: number,
): boolean {
  if (expectation(request) === undefined) {
    return false
  }
  return (
    streamedMediaType !== undefined ||
    Number(request.headers['content-length'] ?? 0) <= bodyBytesMax
  )
}

/** RFC 3986, 3.2.2, without the comma, which joins the values of repeated fields. */
const hostForm = /^(?:\[([^\]]+)\]|(?:[\w.~!$&'()*+;=-]|%[\da-f]{2})+)(?::\d*)?$/i

function isHost(value: string): boolean {
  if (value === '') {
    return true
  }
  if (!value.startsWith('[')) {
    return hostForm.test(value)
  }
  const form = hostForm.exec(value)
  const address = form?.[1] ?? ''
  return isIPv6(address) && !address.includes('%')
}

import { type AccessError, type AccessErrorCode, isAccessError } from '@plant-store/access'
import { type DomainErrorCode, isDomainError } from '@plant-store/domain'

/** The published numbers: status × 100 + n. A number never changes its meaning, and is never used again. */
export const failures = {
  'bad-request': { number: 40000, meaning: 'The request is not well-formed HTTP' },
  'bad-json': { number: 40001, meaning: 'The body is not JSON in UTF-8, or repeats a member' },
  'invalid-plant': { number: 40002, meaning: 'The body is not a valid plant' },
  'id-taken': { number: 40003, meaning: 'Another plant has this id' },
  'invalid-plant-id': { number: 40004, meaning: 'The path does not end in a plant id' },
  'invalid-plant-query': { number: 40005, meaning: 'A query parameter has no valid value' },
  'bad-target': { number: 40006, meaning: 'The request target is not correctly percent-encoded UTF-8' },
  'bad-host': { number: 40007, meaning: 'The header field Host is missing, repeated or not valid' },
  'repeated-field': { number: 40008, meaning: 'A header field that may be given only once is repeated' },
  'repeated-parameter': { number: 40009, meaning: 'A query parameter is given more than once' },
  'partial-put': { number: 40010, meaning: 'A PUT has Content-Range, and a plant is replaced as a whole' },
  'no-token': { number: 40101, meaning: 'No access token was sent' },
  'invalid-token': { number: 40102, meaning: 'The access token is unknown, revoked or expired' },
  'insufficient-scope': { number: 40301, meaning: 'The access token lacks the scope for this operation' },
  'no-such-path': { number: 40401, meaning: 'There is nothing at this path' },
  'plant-not-found': { number: 40402, meaning: 'There is no plant with this id' },
  'method-not-allowed': { number: 40501, meaning: 'The path does not know this method; see Allow' },
  'request-timeout': { number: 40801, meaning: 'The request did not arrive in time' },
  'body-too-large': { number: 41301, meaning: 'The body is larger than the server accepts' },
  'unsupported-media-type': { number: 41501, meaning: 'The body must be application/json in UTF-8' },
  'unsupported-coding': { number: 41502, meaning: 'The body must not be compressed; see Accept-Encoding' },
  'expectation-failed': { number: 41701, meaning: 'The expectation in Expect can not be met' },
  'too-many-wrong-tokens': {
    number: 42901,
    meaning: 'Too many wrong access tokens came from this address; try again after Retry-After',
  },
  'headers-too-large': { number: 43101, meaning: 'The header fields are larger than the server accepts' },
  internal: { number: 50001, meaning: 'The server failed; its log says why' },
  'store-busy': { number: 50301, meaning: 'Too many changes are waiting; try again after Retry-After' },
  'store-unavailable': {
    number: 50302,
    meaning:
      'The store can not be used at the moment, and a change may or may not have been kept; try again after Retry-After',
  },
  draining: { number: 50303, meaning: 'The server is about to stop; try again elsewhere' },
  'too-many-connections': {
    number: 50304,
    meaning: 'The server has as many connections as it takes; try again after Retry-After',
  },
  'too-many-bytes': {
    number: 50305,
    meaning: 'The server holds as much of bodies and answers as it may; try again after Retry-After',
  },
} as const satisfies Record<ElsewhereCode, FailureRow> & Record<string, FailureRow>

type ElsewhereCode = DomainErrorCode | AccessErrorCode | 'internal'
type FailureRow = { readonly number: number; readonly meaning: string }
type FailureCode = keyof typeof failures

/** What can be wrong with a request around the plant that it carries. */
export type RequestErrorCode = Exclude<FailureCode, ElsewhereCode>

export class RequestError extends Error {
  override readonly name = 'RequestError'
  readonly code: RequestErrorCode
  readonly headers: Readonly<Record<string, string>>

  constructor(code: RequestErrorCode, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message)
    this.code = code
    this.headers = headers
  }
}

/** A failure as it goes out. */
export interface Failure {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: { readonly error: number; readonly message: string }
  /** Whether it is the server's own fault, and to be looked into. */
  readonly isDefect: boolean
}

const retryAfterSeconds = '1'

export function toFailure(error: unknown): Failure {
  if (error instanceof RequestError) return failure(error.code, error.message, error.headers)
  // Another copy may know codes that this one doesn't.
  if (isDomainError(error) && Object.hasOwn(failures, error.code)) return failure(error.code, error.message)
  if (isAccessError(error) && Object.hasOwn(failures, error.code))
    return failure(error.code, error.message, { 'www-authenticate': challenge(error) })
  const code = fastifyFailures[(error as { code?: unknown }).code as keyof typeof fastifyFailures]
  if (code !== undefined) return failure(code, failures[code].meaning)
  return failureAround(error) ?? failure('internal', 'the server failed to answer this request')
}

/**
 * What hooks and plugins of the service around throw (at a limit on requests, say): it has no number of ours, only its
 * status's. Their codes begin with FST_ as Fastify's own do, so only the status tells it from a defect.
 */
function failureAround(error: unknown): Failure | undefined {
  const { statusCode: status, message } = error as { statusCode?: unknown; message?: unknown }
  if (typeof status !== 'number' || !((status >= 400 && status < 500) || status === 503)) return undefined
  const body = { error: status * 100, message: `${message}`.toWellFormed() }
  return { status, headers: {}, body, isDefect: false }
}

function failure(code: FailureCode, message: string, headers: Failure['headers'] = {}): Failure {
  const { number } = failures[code]
  const status = Math.floor(number / 100)
  return {
    status,
    headers: status === 503 ? { ...headers, 'retry-after': retryAfterSeconds } : headers,
    body: { error: number, message: message.toWellFormed() },
    isDefect: code === 'internal',
  }
}

/** RFC 6750, 3: without credentials there is nothing to say about them. */
function challenge({ code, message, scope }: AccessError): string {
  const realm = 'Bearer realm="plant-store"'
  if (code === 'no-token') return realm
  const described = `${realm}, error="${code.replace('-', '_')}", error_description=${quoted(message)}`
  return scope === undefined ? described : `${described}, scope=${quoted(scope)}`
}

/** A quoted-string (RFC 9110, 5.6.4). What is not ASCII, or ends a line, has no place in one. */
function quoted(text: string): string {
  return `"${text.replace(/[^ -~]/g, '?').replace(/["\\]/g, '\\$&')}"`
}

/** What Fastify finds wrong before a handler runs. */
const fastifyFailures = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported-media-type',
  FST_ERR_CTP_BODY_TOO_LARGE: 'body-too-large',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'bad-request',
  FST_ERR_BAD_URL: 'bad-target',
  FST_ERR_MAX_PARAM_LENGTH: 'bad-target',
} as const satisfies Record<string, RequestErrorCode>

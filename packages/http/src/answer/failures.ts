import { type AccessError, type AccessErrorCode, isAccessError } from '@plant-store/access'
import { type DomainErrorCode, isDomainError } from '@plant-store/domain'

/** The published error numbers, status × 100 + n. A number never changes its meaning and is never reused. */
export const failures = {
  'bad-request': [40000, 'The request is not well-formed HTTP'],
  'bad-json': [40001, 'The body is not JSON in UTF-8, or repeats a member'],
  'invalid-plant': [40002, 'The body is not a valid plant'],
  'id-taken': [40003, 'The id is already taken'],
  'invalid-plant-id': [40004, 'The path does not end in a plant id'],
  'invalid-plant-query': [40005, 'A query parameter is invalid'],
  'bad-target': [40006, 'The request target is not correctly percent-encoded UTF-8'],
  'bad-host': [40007, 'The header field Host is missing, repeated or invalid'],
  'repeated-field': [40008, 'A header field that may occur only once is repeated'],
  'repeated-parameter': [40009, 'A query parameter is repeated'],
  'partial-put': [40010, 'A PUT has Content-Range, but replaces the whole plant'],
  'bad-condition': [40011, 'If-Match or If-None-Match is neither * nor a list of entity tags'],
  'no-token': [40101, 'No access token was sent'],
  'invalid-token': [40102, 'The access token is unknown, revoked or expired'],
  'insufficient-scope': [40301, 'The access token lacks the scope for this operation'],
  'no-such-path': [40401, 'There is nothing at this path'],
  'plant-not-found': [40402, 'There is no plant with this id'],
  'method-not-allowed': [40501, 'The path does not support this method; see Allow'],
  'request-timeout': [40801, 'The request did not arrive in time'],
  'condition-failed': [41201, 'The plant does not meet If-Match or If-None-Match'],
  'body-too-large': [41301, 'The body is larger than the server accepts'],
  'unsupported-media-type': [41501, 'The body must have the media type of the operation, in UTF-8'],
  'unsupported-coding': [41502, 'The body has an unsupported coding; see Accept-Encoding'],
  'expectation-failed': [41701, 'The expectation in Expect cannot be met'],
  'too-many-wrong-tokens': [
    42901,
    'Too many wrong access tokens from this address; try again after Retry-After',
  ],
  'headers-too-large': [43101, 'The header fields are larger than the server accepts'],
  internal: [50001, 'The server failed; its log says why'],
  'store-busy': [50301, 'Too many changes are pending; try again after Retry-After'],
  'store-unavailable': [
    50302,
    'The store is unavailable, and a change may or may not have been made; try again after Retry-After',
  ],
  draining: [50303, 'The server is shutting down; try another instance'],
  'too-many-connections': [50304, 'The server is at its connection limit; try again after Retry-After'],
  'too-many-bytes': [
    50305,
    'The server is at its memory limit for bodies and answers; try again after Retry-After',
  ],
  'access-unavailable': [50306, 'Access cannot be checked at the moment; try again after Retry-After'],
} as const satisfies Record<ElsewhereCode, FailureRow> & Record<string, FailureRow>

type ElsewhereCode = DomainErrorCode | AccessErrorCode | 'internal'
type FailureRow = readonly [number: number, meaning: string]
type FailureCode = keyof typeof failures

/** The failures of a request, apart from those of the plant and of access. */
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

export interface Failure {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: { readonly error: number; readonly message: string }
  /** Whether the server is at fault, which is logged as an error. */
  readonly isDefect: boolean
}

const retryAfterSeconds = '1'

export function toFailure(error: unknown): Failure {
  if (error instanceof RequestError) return failure(error.code, error.message, error.headers)
  // Another copy may know codes that this copy does not.
  if (isDomainError(error) && Object.hasOwn(failures, error.code)) return failure(error.code, error.message)
  if (isAccessError(error) && Object.hasOwn(failures, error.code))
    return failure(error.code, error.message, challenge(error))
  const code = fastifyFailures.get((error as { code?: unknown }).code)
  if (code !== undefined) return failure(code, failures[code][1])
  return failureAround(error) ?? failure('internal', 'the server failed to answer this request')
}

/**
 * Returns the failure that a hook or plugin of the host throws, such as a rate limit, under the number of its status.
 * Its code begins with FST_ like Fastify's own, so only the status distinguishes it from a defect.
 */
function failureAround(error: unknown): Failure | undefined {
  const { statusCode: status, message } = error as { statusCode?: unknown; message?: unknown }
  if (typeof status !== 'number' || !((status >= 400 && status < 500) || status === 503)) return undefined
  const body = { error: status * 100, message: `${message}`.toWellFormed() }
  return { status, headers: {}, body, isDefect: false }
}

function failure(code: FailureCode, message: string, headers: Failure['headers'] = {}): Failure {
  const [number] = failures[code]
  const status = Math.floor(number / 100)
  return {
    status,
    headers: status === 503 ? { ...headers, 'retry-after': retryAfterSeconds } : headers,
    body: { error: number, message: message.toWellFormed() },
    isDefect: code === 'internal',
  }
}

/** Returns WWW-Authenticate (RFC 6750, 3), without an error if no credentials were sent. */
function challenge({ code, message, scope }: AccessError): Failure['headers'] {
  if (code === 'access-unavailable') return {}
  const realm = 'Bearer realm="plant-store"'
  if (code === 'no-token') return { 'www-authenticate': realm }
  const described = `${realm}, error="${code.replace('-', '_')}", error_description=${quoted(message)}`
  return { 'www-authenticate': scope === undefined ? described : `${described}, scope=${quoted(scope)}` }
}

/** Returns a quoted-string (RFC 9110, 5.6.4) in ASCII on one line. */
function quoted(text: string): string {
  return `"${text.replace(/[^ -~]/g, '?').replace(/["\\]/g, '\\$&')}"`
}

/** The errors that Fastify finds before a handler runs. */
const fastifyFailures: ReadonlyMap<unknown, RequestErrorCode> = new Map([
  ['FST_ERR_CTP_INVALID_MEDIA_TYPE', 'unsupported-media-type'],
  ['FST_ERR_BAD_URL', 'bad-target'],
  ['FST_ERR_MAX_PARAM_LENGTH', 'bad-target'],
])

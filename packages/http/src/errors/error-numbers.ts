import type { AccessErrorCode } from '@plant-store/access'
import type { DomainErrorCode } from '@plant-store/domain'

/** A published number, status × 100 + n, never with another meaning and never reused. */
type FailureRow = readonly [number: number, meaning: string]

/**
 * The published error numbers, in order. A code without one does not compile. 40008 and
 * 42901 are used up.
 */
export const failures = {
  'bad-request': [40000, 'The request is not well-formed HTTP'],
  'bad-json': [40001, 'The body is not JSON in UTF-8, or repeats a member'],
  'invalid-plant': [40002, 'The body is not a valid plant'],
  'id-taken': [40003, 'The id is already taken'],
  'invalid-id': [40004, 'The path does not end in an id'],
  'invalid-query': [40005, 'A query parameter is invalid'],
  'bad-target': [40006, 'The request target is not correctly percent-encoded UTF-8'],
  'bad-host': [40007, 'The header field Host is missing, repeated or not a host'],
  'repeated-parameter': [40009, 'A query parameter is repeated'],
  'partial-put': [40010, 'A PUT has Content-Range, but replaces the whole resource'],
  'bad-condition': [
    40011,
    'If-Match or If-None-Match is neither * nor a list of entity tags',
  ],
  'unknown-parameter': [40012, 'The operation has no such query parameter'],
  'no-token': [40101, 'No access token was sent'],
  'invalid-token': [40102, 'The access token is unknown, revoked or expired'],
  'insufficient-scope': [40301, 'The access token lacks the scope for this operation'],
  'no-such-path': [40401, 'There is nothing at this path'],
  'plant-not-found': [40402, 'There is no plant with this id'],
  'method-not-allowed': [40501, 'The path does not support this method; see Allow'],
  'request-timeout': [40801, 'The request did not arrive in time'],
  'condition-failed': [41201, 'What is stored does not meet If-Match or If-None-Match'],
  'body-too-large': [
    41301,
    'The body, a line of it, or its chunk extensions are too large',
  ],
  'unsupported-media-type': [
    41501,
    'The body must have the media type of the operation, in UTF-8',
  ],
  'unsupported-coding': [
    41502,
    'The body has an unsupported coding; see Accept-Encoding',
  ],
  'expectation-failed': [41701, 'The expectation in Expect cannot be met'],
  'headers-too-large': [43101, 'The header fields are larger than the server accepts'],
  internal: [50001, 'The server failed; its log says why'],
  'store-busy': [50301, 'Too many changes are pending; try again after Retry-After'],
  'store-unavailable': [
    50302,
    'The store is unavailable, and a change may or may not have been made; try again after Retry-After',
  ],
  draining: [50303, 'The server is shutting down; try another instance'],
  'too-many-connections': [
    50304,
    'The server is at its connection limit; try again after Retry-After',
  ],
  'too-many-bytes': [
    50305,
    'The server is at its memory limit for bodies and answers; try again after Retry-After',
  ],
  'access-unavailable': [
    50306,
    'Access cannot be checked at the moment; try again after Retry-After',
  ],
} as const satisfies Record<DomainErrorCode | AccessErrorCode, FailureRow> &
  Record<string, FailureRow>

/** The failures of a request itself. */
export type RequestErrorCode = Exclude<
  keyof typeof failures,
  DomainErrorCode | AccessErrorCode | 'internal'
>

/** A fault of a request itself. Its code has a published number. */
export class RequestError extends Error {
  override readonly name = 'RequestError'
  readonly code: RequestErrorCode
  readonly headers: Readonly<Record<string, string>>

  constructor(
    code: RequestErrorCode,
    message: string,
    headers: RequestError['headers'] = {},
  ) {
    super(message)
    this.code = code
    this.headers = headers
  }
}

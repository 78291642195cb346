import { AccessError } from '@plant-store/access'
import { isDomainError } from '@plant-store/domain'
import {
  type FailureRow,
  failures,
  RequestError,
  type RequestErrorCode,
} from './error-numbers.ts'

export interface Failure {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: { readonly error: number; readonly message: string }
  /** Whether the server is at fault, which is logged as an error. */
  readonly isDefect: boolean
}

const retryAfterSeconds = '1'

/** Returns the answer to an error of any kind. */
export function toFailure(error: unknown): Failure {
  if (error instanceof RequestError) {
    return requestFailure(error)
  }
  if (error instanceof AccessError) {
    return failure(failures[error.code], error.message, challenge(error))
  }
  // A domain of another version may know codes that this table does not.
  if (isDomainError(error) && Object.hasOwn(failures, error.code)) {
    return failure(failures[error.code], error.message)
  }
  const code = fastifyFailures.get((error as { code?: unknown } | undefined)?.code)
  if (code !== undefined) {
    return failure(failures[code], failures[code][1])
  }
  return failure(failures.internal, 'the server failed to answer this request')
}

export function requestFailure({ code, message, headers }: RequestError): Failure {
  return failure(failures[code], message, headers)
}

function failure(
  row: FailureRow,
  message: string,
  headers: Failure['headers'] = {},
): Failure {
  const [number] = row
  const status = Math.floor(number / 100)
  return {
    status,
    headers: {
      // Otherwise a cache may repeat that a plant is missing once it is stored.
      'cache-control': 'no-store',
      ...headers,
      ...(status === 503 && { 'retry-after': retryAfterSeconds }),
    },
    body: { error: number, message: message.toWellFormed() },
    isDefect: row === failures.internal,
  }
}

/**
 * Returns WWW-Authenticate (RFC 6750, 3), without an error if no token was sent.
 */
function challenge({ code, message, scope }: AccessError): Failure['headers'] {
  if (code === 'access-unavailable') {
    return {}
  }
  const realm = 'Bearer realm="plant-store"'
  if (code === 'no-token') {
    return { 'www-authenticate': realm }
  }
  const described = `${realm}, error="${code.replace('-', '_')}", error_description=${quoted(message)}`
  if (scope === undefined) {
    return { 'www-authenticate': described }
  }
  return { 'www-authenticate': `${described}, scope=${quoted(scope)}` }
}

/** Returns a quoted-string (RFC 9110, 5.6.4) in ASCII on one line. */
function quoted(text: string): string {
  return `"${text.replace(/[^ -~]/g, '?').replace(/["\\]/g, '\\$&')}"`
}

/** The errors that Fastify finds before a handler runs. */
const fastifyFailures: ReadonlyMap<unknown, RequestErrorCode> = new Map([
  ['FST_ERR_CTP_INVALID_MEDIA_TYPE', 'unsupported-media-type'],
  ['FST_ERR_BAD_URL', 'bad-target'],
])

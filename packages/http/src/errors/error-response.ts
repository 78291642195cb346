import { AccessError } from '@plant-store/access'
import { isDomainError } from '@plant-store/domain'
import { failures, RequestError, type RequestErrorCode } from './error-numbers.ts'

const retryAfterSeconds = '1'

/** Returns the answer to an error of any kind. */
export function toFailure(error: unknown) {
  if (error instanceof RequestError) {
    return failure(error.code, error.message, error.headers)
  }
  if (error instanceof AccessError) {
    return failure(error.code, error.message, challenge(error))
  }
  // A domain of another version may know codes that this table does not.
  if (isDomainError(error) && Object.hasOwn(failures, error.code)) {
    return failure(error.code, error.message)
  }
  const code = fastifyFailures.get((error as { code?: unknown } | undefined)?.code)
  if (code !== undefined) {
    return failure(code, failures[code][1])
  }
  return failure('internal', 'the server failed to answer this request')
}

function failure(
  code: keyof typeof failures,
  message: string,
  headers: RequestError['headers'] = {},
) {
  const [number] = failures[code]
  const status = Math.floor(number / 100)
  return {
    status,
    headers: {
      // A cache might repeat that a plant is missing after it was stored.
      'cache-control': 'no-store',
      ...headers,
      ...(status === 503 && { 'retry-after': retryAfterSeconds }),
    },
    body: { error: number, message: message.toWellFormed() },
    /** Whether the server is at fault, which is logged as an error. */
    isDefect: code === 'internal',
  }
}

/**
 * Returns WWW-Authenticate (RFC 6750, 3), without an error if no token was sent.
 */
function challenge({ code, message, scope }: AccessError): RequestError['headers'] {
  if (code === 'access-unavailable') {
    return {}
  }
  const realm = 'Bearer realm="plant-store"'
  if (code === 'no-token') {
    return { 'www-authenticate': realm }
  }
  const described = `${realm}, error="${code.replace('-', '_')}", error_description=${quoted(message)}`
  const missing = scope === undefined ? '' : `, scope=${quoted(scope)}`
  return { 'www-authenticate': described + missing }
}

/** Returns a quoted-string (RFC 9110, 5.6.4) in ASCII on one line. */
function quoted(text: string) {
  return `"${text.replace(/[^ -~]/g, '?').replace(/["\\]/g, '\\$&')}"`
}

/** The errors that Fastify finds before a handler runs. */
const fastifyFailures: ReadonlyMap<unknown, RequestErrorCode> = new Map([
  ['FST_ERR_CTP_INVALID_MEDIA_TYPE', 'unsupported-media-type'],
  ['FST_ERR_BAD_URL', 'bad-target'],
])

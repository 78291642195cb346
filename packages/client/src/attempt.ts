import { NoAnswerError } from './errors.ts'
import type { Answer, ClientOptions, OperationRequest } from './request.ts'
import { aborted, within } from './within.ts'

const timeoutMsDefault = 10_000

/**
 * Makes one attempt.
 *
 * @param changedBefore whether an earlier attempt may have made the change
 * @throws NoAnswerError, or what kept the request from being sent, which is not tried
 *   again
 */
export function sendOnce(
  request: OperationRequest<unknown>,
  options: ClientOptions,
  changedBefore: boolean,
): Promise<Answer> {
  const { timeoutMs = timeoutMsDefault } = options
  return within(timeoutMs, request.signal, async signal => {
    const headers = await prepare(request, options, signal).catch(cause => {
      if (signal.aborted) {
        const message = `no access token within ${timeoutMs} ms`
        throw timedOut(message, changedBefore, cause)
      }
      throw cause
    })
    try {
      return await fetchAnswer(request, options, { headers, signal })
    } catch (cause) {
      const mayHaveMade = request.method !== 'GET' && !neverConnected(cause)
      const mayHaveChanged = changedBefore || mayHaveMade
      if (signal.aborted) {
        throw timedOut(`no answer within ${timeoutMs} ms`, mayHaveChanged, cause)
      }
      const details = { reason: 'connection-failed', mayHaveChanged } as const
      throw new NoAnswerError('no answer: the connection failed', details, cause)
    }
  })
}

function timedOut(
  message: string,
  mayHaveChanged: boolean,
  cause: unknown,
): NoAnswerError {
  return new NoAnswerError(message, { reason: 'timed-out', mayHaveChanged }, cause)
}

/**
 * Resolves to the header fields, once there is a token. Nothing was sent if it rejects.
 */
async function prepare(
  request: OperationRequest<unknown>,
  { token, fetch = globalThis.fetch }: ClientOptions,
  signal: AbortSignal,
): Promise<Headers> {
  assertFetch(fetch)
  const bearer =
    typeof token === 'string' ? token : await Promise.race([token(), aborted(signal)])
  return headersOf(request, bearer)
}

async function fetchAnswer(
  { method, url, body }: OperationRequest<unknown>,
  { fetch = globalThis.fetch }: ClientOptions,
  { headers, signal }: { readonly headers: Headers; readonly signal: AbortSignal },
): Promise<Answer> {
  // A redirect could leak the token or drop the body.
  const redirect = 'manual'
  const init = { method, headers, body: body ?? null, redirect, signal } as const
  const response = await fetch(url, init)
  const text = await response.text()
  return { status: response.status, headers: response.headers, text }
}

function assertFetch(fetch: unknown): void {
  if (typeof fetch !== 'function') {
    throw new TypeError('there is no fetch: pass one as an option')
  }
}

/** The errors of `Headers` contain the value, so the token is judged before. */
function headersOf(
  { headers: own, body }: OperationRequest<unknown>,
  token: unknown,
): Headers {
  if (typeof token !== 'string' || !/^[!-~]+$/.test(token)) {
    throw new TypeError(
      'the access token must be one word, without white space and without "Bearer"',
    )
  }
  const headers = new Headers({
    accept: 'application/json',
    authorization: `Bearer ${token}`,
    ...own,
  })
  if (body !== undefined && !headers.has('content-type')) {
    headers.set('content-type', 'application/json')
  }
  return headers
}

/** The codes of a connection that was never established, in Node, Bun and Deno. */
const unconnectedCodes =
  /^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|ConnectionRefused)$/

/** The codes of a certificate that was refused, before anything was sent. */
const certificateCodes =
  /^(?:CERT_\w+|\w*SELF_SIGNED_CERT\w*|UNABLE_TO_\w+|ERR_TLS_CERT_ALTNAME_INVALID)$/

/**
 * The messages of Deno for a connection, and of Node for a port that `fetch` refuses.
 */
const unconnectedMessages = /: client error \(Connect\): |^bad port$/

/**
 * Returns whether an error proves that nothing was sent. Those of browsers prove nothing.
 */
function neverConnected(error: unknown): boolean {
  // An error of another realm is no instance of Error here.
  const { code, message, cause } = error as Readonly<
    Record<'code' | 'message' | 'cause', unknown>
  >
  const isUnconnected =
    unconnectedCodes.test(`${code}`) ||
    certificateCodes.test(`${code}`) ||
    unconnectedMessages.test(`${message}`)
  return isUnconnected || (Boolean(cause) && neverConnected(cause))
}

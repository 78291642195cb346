import { readAnswer } from './answer.ts'
import { NoAnswerError, RefusedError } from './errors.ts'
import {
  type Answer,
  type ClientOptions,
  checkOptions,
  type OperationRequest,
} from './request.ts'

/** The longest wait before the second attempt. It doubles for each further one. */
const backOffMs = 100
const backOffMsMax = 5_000
/** A longer `Retry-After` ends the call. */
const retryAfterMsMax = 30_000

export type Send = <Result>(request: OperationRequest<Result>) => Promise<Result>

/**
 * Returns a function that sends a request until it has an answer or must not be repeated.
 * Creating is not idempotent: a repeated create would find the id taken by its own plant.
 * It is repeated only if nothing was changed.
 */
export function createSend(options: ClientOptions): Send {
  checkOptions(options)
  return createUncheckedSend({ ...options, neverConnected })
}

/** Options, and what the errors of a runtime's `fetch` prove. */
interface SendOptions extends ClientOptions {
  /** Returns whether an error proves that nothing was sent. */
  readonly neverConnected: (error: unknown) => boolean
}

export function createUncheckedSend(options: SendOptions): Send {
  const { attemptsMax = 4 } = options
  return async request => {
    const { signal, mayRepeat = false } = request
    let mayHaveChanged = mayRepeat
    for (let attempt = 1; ; attempt++) {
      signal?.throwIfAborted()
      try {
        const answer: Answer = await sendOnce(request, options, mayHaveChanged)
        return readAnswer(request, answer, mayHaveChanged)
      } catch (error) {
        signal?.throwIfAborted()
        const isLast = attempt >= attemptsMax
        if (isLast || !isTemporary(error) || !isRepeatable(request, error)) {
          throw error
        }
        mayHaveChanged = error.mayHaveChanged
        await waitBefore(attempt + 1, error, signal)
      }
    }
  }
}

type Failure = RefusedError | NoAnswerError

/** Returns whether another attempt may succeed soon. A failure without a status is. */
function isTemporary(error: unknown): error is Failure {
  if (!(error instanceof RefusedError || error instanceof NoAnswerError)) {
    return false
  }
  const { status = 503, retryAfterMs = 0 } = error
  return [429, 502, 503, 504].includes(status) && retryAfterMs <= retryAfterMsMax
}

function isRepeatable(
  { method, mayRepeat = false }: OperationRequest<unknown>,
  { mayHaveChanged }: Failure,
): boolean {
  return method !== 'POST' || mayRepeat || !mayHaveChanged
}

/**
 * Waits for the whole time or less, so that clients that failed together do not return
 * together.
 */
async function waitBefore(
  attempt: number,
  { retryAfterMs = 0 }: Failure,
  signal: AbortSignal | undefined,
): Promise<void> {
  const longestMs = Math.min(backOffMsMax, backOffMs * 2 ** (attempt - 2))
  const jitterMs = Math.random() * longestMs
  await within(retryAfterMs + jitterMs, signal, aborted).catch(() => {})
}

const timeoutMsDefault = 10_000

/**
 * Makes one attempt.
 *
 * @param changedBefore whether an earlier attempt may have made the change
 * @throws NoAnswerError, or what kept the request from being sent, which is not tried
 *   again
 */
function sendOnce(
  request: OperationRequest<unknown>,
  options: SendOptions,
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
      const mayHaveMade = request.method !== 'GET' && !options.neverConnected(cause)
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
): Promise<Record<string, string>> {
  if (fetch === undefined) {
    throw new TypeError('there is no fetch: pass one as an option')
  }
  const bearer =
    typeof token === 'string' ? token : await Promise.race([token(), aborted(signal)])
  return headersOf(request, bearer)
}

async function fetchAnswer(
  { method, url, body }: OperationRequest<unknown>,
  { fetch = globalThis.fetch }: ClientOptions,
  {
    headers,
    signal,
  }: { readonly headers: Record<string, string>; readonly signal: AbortSignal },
): Promise<Answer> {
  // A redirect could leak the token or drop the body.
  const redirect = 'manual'
  const init = { method, headers, body: body ?? null, redirect, signal } as const
  const response = await fetch(url, init)
  const text = await response.text()
  return { status: response.status, headers: response.headers, text }
}

/** The errors of `Headers` contain the value, so the token is judged before. */
function headersOf(
  { headers: own, body }: OperationRequest<unknown>,
  token: unknown,
): Record<string, string> {
  if (typeof token !== 'string' || !/^[!-~]+$/.test(token)) {
    throw new TypeError(
      'the access token must be one word, without white space and without "Bearer"',
    )
  }
  return {
    accept: 'application/json',
    authorization: `Bearer ${token}`,
    ...(body !== undefined && { 'content-type': 'application/json' }),
    ...own,
  }
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

/**
 * Runs something that ends when the time is over or the caller gives up.
 * AbortSignal.timeout and AbortSignal.any would keep each call in memory until then.
 */
async function within<Result>(
  ms: number,
  caller: AbortSignal | undefined,
  run: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const controller = new AbortController()
  const abort = () => controller.abort()
  const timer = ms === Number.POSITIVE_INFINITY ? undefined : setTimeout(abort, ms)
  caller?.addEventListener('abort', abort)
  try {
    return await run(controller.signal)
  } finally {
    clearTimeout(timer)
    caller?.removeEventListener('abort', abort)
  }
}

/** Rejects once the signal is aborted. */
function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) =>
    signal.addEventListener('abort', () => reject(signal.reason)),
  )
}

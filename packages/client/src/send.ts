import { errorNumbers } from './error-numbers.ts'
import { NoAnswerError, RefusedError } from './errors.ts'
import { parseExactJson, toNumber } from './exact-json.ts'
import { type RetryLimits, readRetryAfter, wait, waitBeforeRetry } from './retry.ts'

/** A request of one operation, and how to read its answer. */
export interface Call<Result> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly url: URL
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** Of the body, by default application/json. */
  readonly mediaType?: string
  /** Allows a POST to be repeated. Each failed attempt may have made part of the change. */
  readonly mayRepeat?: boolean
  readonly options: { readonly signal?: AbortSignal | undefined } | undefined
  /** @throws if the body is not an answer of the operation */
  readonly read: (body: unknown, headers: Headers) => Result
  /**
   * Takes a refusal that follows an attempt without an answer. Resolves to the result if that attempt seems to have
   * made the change, and otherwise to a falsy value.
   */
  readonly settle?: (refusal: RefusedError) => Promise<Result | false | undefined>
}

export interface SendOptions extends RetryLimits {
  /** The access token, or a function that returns the current one. */
  readonly token: string | (() => string | Promise<string>)
  /** For each attempt, from fetching the token to the last byte, by default 10,000. */
  readonly timeoutMs: number
  readonly fetch: typeof globalThis.fetch
}

/** The status of success. */
const done = { GET: 200, POST: 200, PUT: 200, DELETE: 204 }

/** Sends a request until it has an answer or must not be repeated. */
export type Send = <Result>(call: Call<Result>) => Promise<Result>

export function createSend(options: SendOptions): Send {
  return async call => {
    const signal = call.options?.signal
    const { method, mayRepeat = false } = call
    const isRepeatable = method !== 'POST' || mayRepeat
    let mayHaveChanged = mayRepeat
    for (let attempt = 1; ; attempt++) {
      signal?.throwIfAborted()
      try {
        return understand(call, await exchange(call, options, mayHaveChanged), mayHaveChanged)
      } catch (error) {
        signal?.throwIfAborted()
        if (mayHaveChanged && error instanceof RefusedError) {
          const settled = await call.settle?.(error)
          if (settled) return settled
          signal?.throwIfAborted()
        }
        const waitMs = waitBeforeRetry(error, { attempt, isRepeatable, limits: options })
        if (waitMs === undefined) throw error
        mayHaveChanged = (error as RefusedError | NoAnswerError).mayHaveChanged
        await wait(waitMs, signal)
      }
    }
  }
}

interface Answer extends Pick<Response, 'status' | 'headers'> {
  readonly text: string
}

/** @param mayHaveChanged whether an earlier attempt may have made the change */
async function exchange(
  { method, url, headers: given, body, mediaType = 'application/json', options }: Call<unknown>,
  { token, fetch, timeoutMs }: SendOptions,
  mayHaveChanged: boolean,
): Promise<Answer> {
  const caller = options?.signal
  // AbortSignal.timeout and AbortSignal.any would keep each call in memory until the time is over.
  const attempt = new AbortController()
  const giveUp = () => attempt.abort()
  let timedOut = false
  const timer = setTimeout(() => {
    timedOut = true
    attempt.abort()
  }, timeoutMs)
  caller?.addEventListener('abort', giveUp)
  const { signal } = attempt
  let isSent = false
  try {
    const headers = new Headers({
      ...given,
      accept: 'application/json',
      authorization: `Bearer ${typeof token === 'string' ? token : await unlessAborted(token, signal)}`,
      ...(body !== undefined && { 'content-type': mediaType }),
    })
    isSent = true
    // A redirect could leak the token or drop the body.
    const redirect = 'manual'
    const response = await fetch(url, { method, headers, body: body ?? null, redirect, signal })
    return { status: response.status, headers: response.headers, text: await response.text() }
  } catch (cause) {
    const unknown = mayHaveChanged || (isSent && method !== 'GET' && !neverConnected(cause))
    if (timedOut) {
      const message = `no ${isSent ? 'answer' : 'access token'} within ${timeoutMs} ms`
      throw new NoAnswerError('timed-out', message, unknown, { cause })
    }
    if (!isSent) throw cause
    throw new NoAnswerError('connection-failed', 'no answer: the connection failed', unknown, { cause })
  } finally {
    clearTimeout(timer)
    caller?.removeEventListener('abort', giveUp)
  }
}

/** Rejects with the signal's reason once it is aborted, even if the value never arrives. */
function unlessAborted<Value>(get: () => Value | Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason))
    Promise.resolve(get()).then(resolve, reject)
  })
}

function understand<Result>(
  call: Call<Result>,
  { status, headers, text }: Answer,
  unknownBefore: boolean,
): Result {
  const changes = call.method !== 'GET'
  const retryAfterMs = readRetryAfter(headers.get('retry-after'))
  let cause: unknown
  try {
    const body = text === '' ? undefined : parseExactJson(text)
    if (status === done[call.method]) return call.read(body, headers)
    const refusal = readRefusal(status, body)
    if (refusal !== undefined) {
      const mayHaveChanged = unknownBefore || (changes && status >= 500 && !unchanged.has(refusal.number))
      throw new RefusedError({ status, retryAfterMs, ...refusal }, mayHaveChanged)
    }
  } catch (error) {
    if (error instanceof RefusedError) throw error
    cause = error
  }
  const isClientsFault = status >= 400 && status < 500
  const mayHaveChanged = unknownBefore || (changes && !isClientsFault)
  const message = `the answer with status ${status} is not from a plant store`
  throw new NoAnswerError('unreadable-answer', message, mayHaveChanged, { status, retryAfterMs, cause })
}

function readRefusal(status: number, body: unknown): { number: number; message: string } | undefined {
  const { error, message } = (body ?? {}) as { error?: unknown; message?: unknown }
  return status >= 400 && typeof message === 'string' ? { number: toNumber(error), message } : undefined
}

/** Errors from 50000 on that are sent before the request is handled, so nothing was changed. */
const unchanged = new Set<number>([
  errorNumbers['store-busy'],
  errorNumbers.draining,
  errorNumbers['too-many-connections'],
  errorNumbers['too-many-bytes'],
  errorNumbers['access-unavailable'],
])

/** Codes of Node and Bun for a connection that was never established. Browsers give none. */
const neverConnectedCodes = new Set<unknown>([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  'ConnectionRefused',
])

/** Deno has only a message (as of 2.9.6). */
const neverConnectedOnDeno = /: client error \(Connect\): /

function neverConnected(error: unknown): boolean {
  const { code, message, cause } = error as { code?: unknown; message?: unknown; cause?: unknown }
  if (neverConnectedCodes.has(code) || neverConnectedOnDeno.test(`${message}`)) return true
  return Boolean(cause) && neverConnected(cause)
}

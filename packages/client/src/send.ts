import { parseJsonRecord } from '@plant-store/json'
import { NoAnswerError, RefusedError } from './errors.ts'
import { type AnswerHeaders, type ClientOptions, checkOptions } from './options.ts'

/** A request of one operation, and how to read its answer. */
export interface OperationRequest<Result> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /**
   * Allows a POST to be repeated. Each failed attempt may have made part of the change.
   */
  readonly mayRepeat?: boolean
  readonly signal: AbortSignal | undefined
  /** @throws if the body is not an answer of the operation */
  readonly read: (body: unknown, answer: Answer) => Result
}

/** An answer that arrived whole. */
export interface Answer {
  readonly status: number
  readonly headers: AnswerHeaders
  readonly text: string
}

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
  const { timeoutMs = 10_000, fetch = globalThis.fetch } = options
  if (fetch === undefined) {
    throw new TypeError('there is no fetch: pass one as an option')
  }
  const { method, url, body = null } = request
  const timedOut = (missing: string, mayHaveChanged: boolean, cause: unknown) => {
    const message = `no ${missing} within ${timeoutMs} ms`
    return new NoAnswerError(message, { reason: 'timed-out', mayHaveChanged }, cause)
  }
  return within(timeoutMs, request.signal, async signal => {
    const headers = await headersOf(request, options, signal).catch(cause => {
      throw signal.aborted ? timedOut('access token', changedBefore, cause) : cause
    })
    try {
      // A redirect could leak the token or drop the body.
      const init = { method, headers, body, redirect: 'manual', signal } as const
      const response = await fetch(url, init)
      const text = await response.text()
      return { status: response.status, headers: response.headers, text }
    } catch (cause) {
      const mayHaveMade = method !== 'GET' && !options.neverConnected(cause)
      const mayHaveChanged = changedBefore || mayHaveMade
      if (signal.aborted) {
        throw timedOut('answer', mayHaveChanged, cause)
      }
      const details = { reason: 'connection-failed', mayHaveChanged } as const
      throw new NoAnswerError('no answer: the connection failed', details, cause)
    }
  })
}

/**
 * Resolves to the header fields, once there is a token. The errors of `Headers` contain
 * the value, so the token is judged before.
 */
async function headersOf(
  { headers, body }: OperationRequest<unknown>,
  { token: given }: ClientOptions,
  signal: AbortSignal,
): Promise<Record<string, string>> {
  const token: unknown =
    typeof given === 'string' ? given : await Promise.race([given(), aborted(signal)])
  if (typeof token !== 'string' || !/^[!-~]+$/.test(token)) {
    throw new TypeError(
      'the access token must be one word, without white space and without "Bearer"',
    )
  }
  return {
    accept: 'application/json',
    authorization: `Bearer ${token}`,
    ...(body !== undefined && { 'content-type': 'application/json' }),
    ...headers,
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

const successes = { GET: [200], POST: [200], PUT: [200, 201], DELETE: [204] }

/** The store has refused these before it handled the request: nothing was changed. */
const unchanged = new Set([50301, 50303, 50304, 50305, 50306])

/**
 * Returns the result in an answer.
 *
 * @param changedBefore whether an earlier attempt may have made the change
 * @throws RefusedError, or NoAnswerError if the answer is not from a plant store
 */
export function readAnswer<Result>(
  { method, read }: OperationRequest<Result>,
  answer: Answer,
  changedBefore: boolean,
): Result {
  const { status, headers, text } = answer
  let refusal: ReturnType<typeof readRefusal> | undefined
  let cause: unknown
  try {
    const body = text === '' ? undefined : parseJsonRecord(text)
    if (successes[method].includes(status)) {
      return read(body, answer)
    }
    refusal = readRefusal(status, body)
  } catch (error) {
    cause = error
  }

  const isOfClient = status >= 400 && status < 500
  const isUnchanged =
    isOfClient || (refusal !== undefined && unchanged.has(refusal.number))
  const mayHaveChanged = changedBefore || (method !== 'GET' && !isUnchanged)
  const retryAfterMs = readRetryAfter(headers.get('retry-after'))
  const details = { status, mayHaveChanged, retryAfterMs }
  if (refusal !== undefined) {
    throw new RefusedError(refusal.message, { ...details, number: refusal.number })
  }
  throw new NoAnswerError(
    `the answer with status ${status} is not from a plant store`,
    { ...details, reason: 'unreadable-answer' },
    cause,
  )
}

/** @throws TypeError if the answer is no refusal of a store */
function readRefusal(status: number, body: unknown) {
  const { error, message } = Object(body)
  if (status < 400 || typeof message !== 'string') {
    throw new TypeError('the answer must be a refusal')
  }
  return { number: toNumber(error), message }
}

/**
 * Returns the milliseconds of a Retry-After field, in seconds or as a date (RFC 9110,
 * 10.2.3).
 */
function readRetryAfter(field: string | null): number | undefined {
  if (field === null) {
    return undefined
  }
  if (/^\d+$/.test(field)) {
    return Number(field) * 1000
  }
  const atMs = Date.parse(field)
  if (Number.isNaN(atMs)) {
    return undefined
  }
  return Math.max(0, atMs - Date.now())
}

/**
 * @throws TypeError if the value is not an integer that a JavaScript number holds exactly
 */
export function toNumber(value: unknown): number {
  const isNumeric = typeof value === 'bigint' || typeof value === 'number'
  const number = Number(value)
  if (isNumeric && Number.isSafeInteger(number)) {
    return number
  }
  throw new TypeError('an integer up to 2^53 is expected')
}

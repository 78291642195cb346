import { parseJsonRecord } from '@plant-store/json'
import { NoAnswerError, RefusedError } from './errors.ts'

export interface ClientOptions {
  /** The part before the paths of the description, such as `/plants`. */
  readonly baseUrl: string | URL
  /** The access token, or a function that returns the current one. */
  readonly token: string | (() => string | Promise<string>)
  readonly fetch?: typeof globalThis.fetch
  /** For each attempt, from fetching the token to the last byte, by default 10,000. */
  readonly timeoutMs?: number
  /** Includes the first attempt. By default 4. */
  readonly attemptsMax?: number
}

/** The longest wait before the second attempt. It doubles for each further one. */
const backOffMs = 100
const backOffMsMax = 5_000
/** A longer `Retry-After` ends the call. */
const retryAfterMsMax = 30_000

/** A request of one operation, and how to read its answer. */
export interface OperationRequest<Result> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly url: string | URL
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** Allows a POST to be repeated. Each failed attempt may have made part of the change. */
  readonly mayRepeat?: boolean
  readonly signal: AbortSignal | undefined
  /** @throws if the body is not an answer of the operation */
  readonly read: (body: unknown, headers: Headers) => Result
}

/**
 * Returns a function that sends a request until it has an answer or must not be repeated. Creating is not idempotent: a
 * repeated create would find the id taken by its own plant. It is repeated only if nothing was changed.
 */
export function createSend(
  options: ClientOptions,
): <Result>(request: OperationRequest<Result>) => Promise<Result> {
  const { attemptsMax = 4 } = options
  return async request => {
    const { method, signal, mayRepeat = false } = request
    let mayHaveChanged = mayRepeat
    for (let attempt = 1; ; attempt++) {
      signal?.throwIfAborted()
      try {
        return understand(
          request,
          await sendOnce(request, options, mayHaveChanged),
          mayHaveChanged,
        )
      } catch (error) {
        signal?.throwIfAborted()
        if (!(error instanceof RefusedError || error instanceof NoAnswerError)) {
          throw error
        }
        mayHaveChanged = error.mayHaveChanged
        const { status = 503, retryAfterMs = 0 } = error
        if (![429, 502, 503, 504].includes(status) || retryAfterMs > retryAfterMsMax) {
          throw error
        }
        if (
          (mayHaveChanged && method === 'POST' && !mayRepeat) ||
          attempt >= attemptsMax
        ) {
          throw error
        }
        // Jitter over the whole time, so that clients that failed together do not return together.
        const jitterMs =
          Math.random() * Math.min(backOffMsMax, backOffMs * 2 ** (attempt - 1))
        await within(retryAfterMs + jitterMs, signal, aborted).catch(() => {})
      }
    }
  }
}

/** Runs until a time. AbortSignal.timeout and AbortSignal.any would keep each call in memory until then. */
async function within<Result>(
  ms: number,
  caller: AbortSignal | undefined,
  run: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const controller = new AbortController()
  const abort = () => controller.abort()
  const timer = setTimeout(abort, ms)
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

type Answer = Pick<Response, 'status' | 'headers'> & { readonly text: string }

/** @param changedBefore whether an earlier attempt may have made the change */
function sendOnce(
  { method, url, headers: given, body, signal: caller }: OperationRequest<unknown>,
  { token, fetch = globalThis.fetch, timeoutMs = 10_000 }: ClientOptions,
  changedBefore: boolean,
): Promise<Answer> {
  return within(timeoutMs, caller, async signal => {
    let isSent = false
    try {
      const bearer =
        typeof token === 'string' ? token : await Promise.race([token(), aborted(signal)])
      const headers = new Headers({
        accept: 'application/json',
        authorization: `Bearer ${bearer}`,
        ...given,
      })
      if (body !== undefined && !headers.has('content-type')) {
        headers.set('content-type', 'application/json')
      }
      isSent = true
      // A redirect could leak the token or drop the body.
      const response = await fetch(url, {
        method,
        headers,
        body: body ?? null,
        redirect: 'manual',
        signal,
      })
      return {
        status: response.status,
        headers: response.headers,
        text: await response.text(),
      }
    } catch (cause) {
      const mayHaveChanged =
        changedBefore || (isSent && method !== 'GET' && !neverConnected(cause))
      if (signal.aborted) {
        const message = `no ${isSent ? 'answer' : 'access token'} within ${timeoutMs} ms`
        throw new NoAnswerError(message, { reason: 'timed-out', mayHaveChanged }, cause)
      }
      if (!isSent) {
        throw cause
      }
      const details = { reason: 'connection-failed', mayHaveChanged } as const
      throw new NoAnswerError('no answer: the connection failed', details, cause)
    }
  })
}

function understand<Result>(
  { method, read }: OperationRequest<Result>,
  { status, headers, text }: Answer,
  changedBefore: boolean,
): Result {
  const retryAfterMs = readRetryAfter(headers.get('retry-after'))
  try {
    const body = text === '' ? undefined : parseJsonRecord(text)
    if (status === (method === 'DELETE' ? 204 : 200)) {
      return read(body, headers)
    }
    const { error, message } = (body ?? {}) as { error?: unknown; message?: unknown }
    if (status < 400 || typeof message !== 'string') {
      throw new TypeError('the answer must be a refusal')
    }
    const number = toNumber(error)
    const mayHaveChanged =
      changedBefore || (method !== 'GET' && status >= 500 && !unchanged.has(number))
    throw new RefusedError(message, { status, number, mayHaveChanged, retryAfterMs })
  } catch (cause) {
    if (cause instanceof RefusedError) {
      throw cause
    }
    const mayHaveChanged =
      changedBefore || (method !== 'GET' && (status < 400 || status >= 500))
    const details = {
      reason: 'unreadable-answer',
      status,
      mayHaveChanged,
      retryAfterMs,
    } as const
    throw new NoAnswerError(
      `the answer with status ${status} is not from a plant store`,
      details,
      cause,
    )
  }
}

/** Sent before the request is handled: the store is busy, stopping, at a limit, or cannot check access. */
const unchanged = new Set([50301, 50303, 50304, 50305, 50306])

/** Returns the milliseconds of a Retry-After field, in seconds or as a date (RFC 9110, 10.2.3). */
function readRetryAfter(field: string | null): number | undefined {
  const ms = /^\d+$/.test(field ?? '')
    ? Number(field) * 1000
    : Date.parse(field ?? '') - Date.now()
  return Number.isNaN(ms) ? undefined : Math.max(0, ms)
}

/** @throws TypeError if the value is not an integer that a JavaScript number holds exactly */
export function toNumber(value: unknown): number {
  const number = Number(value)
  if (
    (typeof value === 'bigint' || typeof value === 'number') &&
    Number.isSafeInteger(number)
  ) {
    return number
  }
  throw new TypeError('an integer up to 2^53 is expected')
}

/** What Node, Bun and Deno say of a connection that was never established. Browsers say nothing. */
const neverEstablished =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|ConnectionRefused):|: client error \(Connect\): /

function neverConnected(error: unknown): boolean {
  const { code, message, cause } = error as {
    code?: unknown
    message?: unknown
    cause?: unknown
  }
  return (
    neverEstablished.test(`${code}: ${message}`) ||
    (Boolean(cause) && neverConnected(cause))
  )
}

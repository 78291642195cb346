import { NoAnswerError, RefusedError } from './errors.ts'

export interface RetryLimits {
  /** How often a request is sent at most, the first time included. */
  readonly attemptsMax: number
  /** The longest wait before the second attempt; it doubles with each further one. */
  readonly backOffMs: number
  readonly backOffMsMax: number
  /** A store that wants to be left alone for longer is not asked again. */
  readonly retryAfterMsMax: number
}

const passing = new Set([429, 502, 503, 504])

/**
 * How long to wait before sending the request again; `undefined` when it must not be, or there is no use.
 *
 * Reading, replacing and removing do no more harm twice than once. Creating does (it would answer that the id is taken,
 * by the plant itself), so it is repeated only when it is known that nothing was changed.
 */
export function waitBeforeRetry(
  error: unknown,
  { attempt, isRepeatable, limits }: { attempt: number; isRepeatable: boolean; limits: RetryLimits },
): number | undefined {
  if (!(error instanceof RefusedError || error instanceof NoAnswerError)) return undefined
  const mayPass = error.status === undefined || passing.has(error.status)
  if (!mayPass || (!isRepeatable && error.mayHaveChanged) || attempt >= limits.attemptsMax) return undefined
  const { retryAfterMs = 0 } = error
  if (retryAfterMs > limits.retryAfterMsMax) return undefined
  // Spread over the whole time, so that many clients that failed together don't come back together.
  return retryAfterMs + Math.random() * Math.min(limits.backOffMsMax, limits.backOffMs * 2 ** (attempt - 1))
}

/** The milliseconds that a Retry-After field means: seconds or a date (RFC 9110, 10.2.3). */
export function readRetryAfter(field: string | null): number | undefined {
  if (field === null) return undefined
  if (/^\d+$/.test(field)) return Number(field) * 1000
  const date = Date.parse(field)
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now())
}

/** Resolves after the time, or as soon as the signal is aborted. */
export async function wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<unknown>()
  const timer = setTimeout(resolve, ms)
  signal?.addEventListener('abort', resolve)
  await promise
  clearTimeout(timer)
  signal?.removeEventListener('abort', resolve)
}

import { NoAnswerError, RefusedError } from './errors.ts'

export interface RetryLimits {
  /** Includes the first attempt. */
  readonly attemptsMax: number
  /** The longest wait before the second attempt. It doubles for each further one. */
  readonly backOffMs: number
  readonly backOffMsMax: number
  /** A request is not repeated if `Retry-After` is longer. */
  readonly retryAfterMsMax: number
}

const passing = new Set([429, 502, 503, 504])

/**
 * Returns how long to wait before repeating the request, or `undefined` if it must not or need not be repeated.
 *
 * Reading, replacing and removing are idempotent. Creating is not: a repeated create would find the id taken by its own
 * plant. It is repeated only if nothing was changed.
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
  // Jitter over the whole time, so that clients that failed together do not return together.
  return retryAfterMs + Math.random() * Math.min(limits.backOffMsMax, limits.backOffMs * 2 ** (attempt - 1))
}

/** Returns the milliseconds of a Retry-After field, in seconds or as a date (RFC 9110, 10.2.3). */
export function readRetryAfter(field: string | null): number | undefined {
  if (field === null) return undefined
  if (/^\d+$/.test(field)) return Number(field) * 1000
  const date = Date.parse(field)
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now())
}

/** Resolves after the time, or once the signal is aborted. */
export async function wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<unknown>()
  const timer = setTimeout(resolve, ms)
  signal?.addEventListener('abort', resolve)
  await promise
  clearTimeout(timer)
  signal?.removeEventListener('abort', resolve)
}

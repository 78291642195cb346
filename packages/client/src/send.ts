import { readAnswer } from './answer.ts'
import { sendOnce } from './attempt.ts'
import { NoAnswerError, RefusedError } from './errors.ts'
import type { Answer, ClientOptions, OperationRequest } from './request.ts'
import { aborted, within } from './within.ts'

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

import { parseJsonRecord } from '@plant-store/json'
import { NoAnswerError, RefusedError } from './errors.ts'
import type { Answer, OperationRequest } from './request.ts'

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
  const retryAfterMs = readRetryAfter(headers.get('retry-after'))
  const isChange = method !== 'GET'
  try {
    const body = readBody(text)
    if (successes[method].includes(status)) {
      return read(body, answer)
    }
    const { number, message } = readRefusal(status, body)
    const mayHaveMade = isChange && status >= 500 && !unchanged.has(number)
    const mayHaveChanged = changedBefore || mayHaveMade
    throw new RefusedError(message, { status, number, mayHaveChanged, retryAfterMs })
  } catch (cause) {
    if (cause instanceof RefusedError) {
      throw cause
    }
    const mayHaveMade = isChange && (status < 400 || status >= 500)
    const mayHaveChanged = changedBefore || mayHaveMade
    const reason = 'unreadable-answer'
    throw new NoAnswerError(
      `the answer with status ${status} is not from a plant store`,
      { reason, status, mayHaveChanged, retryAfterMs },
      cause,
    )
  }
}

/** @throws SyntaxError if the text is no JSON */
function readBody(text: string): unknown {
  if (text === '') {
    return undefined
  }
  return parseJsonRecord(text)
}

/** @throws TypeError if the answer is no refusal of a store */
function readRefusal(status: number, body: unknown): { number: number; message: string } {
  const { error, message } = (body ?? {}) as Readonly<
    Record<'error' | 'message', unknown>
  >
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

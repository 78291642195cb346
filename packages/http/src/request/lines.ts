import { addAbortListener } from 'node:events'
import { RequestError } from '../errors/error-numbers.ts'
import type { ServerLimits } from '../limits.ts'
import type { Body } from '../wire/body.ts'
import { curlAdvice } from './json.ts'

/** How much is read while the caller works on earlier lines. */
const readAheadBytes = 64 * 1024

const newline = 0x0a
const carriageReturn = 0x0d

/**
 * Yields the lines of a body as they arrive, several at a time. The last newline is
 * optional. The time in which the caller does not read is not that of a line.
 *
 * @param ending ends the reading when it is aborted
 * @throws RequestError `body-too-large` for a line, `request-timeout`, `draining`, or
 *   the error of the body
 */
export async function* readLines(
  body: Body,
  { bodyBytesMax, requestTimeoutMs }: ServerLimits,
  ending: AbortSignal,
) {
  const late = () =>
    body.endEarly(
      new RequestError('request-timeout', 'a line of the body did not arrive in time'),
    )
  const stop = () =>
    body.endEarly(new RequestError('draining', 'the server is shutting down'))
  body.isTimedByReader = true
  using _stopping = addAbortListener(ending, stop)
  let timer = setTimeout(late, requestTimeoutMs)
  try {
    for (;;) {
      const { promise: change, resolve: changed } = Promise.withResolvers<void>()
      const length = body.lengthThrough(newline)
      body.waitForMore(body.length - length + readAheadBytes, changed)
      if (body.error !== undefined) {
        throw body.error
      }
      if (length > 0) {
        clearTimeout(timer)
        yield linesIn(body.take(length), bodyBytesMax)
        timer = setTimeout(late, requestTimeoutMs)
      } else if (body.isWhole) {
        return
      }
      // The byte after the longest line may be a carriage return.
      else if (body.length > bodyBytesMax + 1) {
        throw tooLong(bodyBytesMax)
      } else {
        await change
      }
    }
  } finally {
    clearTimeout(timer)
  }
}

// Yields them one by one, because a line that is not kept costs the garbage collector
// nothing.
function* linesIn(bytes: Buffer, lineBytesMax: number) {
  let start = 0
  while (start < bytes.length) {
    const next = bytes.indexOf(newline, start)
    const line = bytes.subarray(start, next === -1 ? bytes.length : next)
    if (line.length > lineBytesMax + Number(line.at(-1) === carriageReturn)) {
      throw tooLong(lineBytesMax)
    }
    yield line
    start += line.length + 1
  }
}

export function isEmptyLine(line: Buffer): boolean {
  return line.length === 0 || (line.length === 1 && line[0] === carriageReturn)
}

function tooLong(lineBytesMax: number) {
  return new RequestError(
    'body-too-large',
    `a line of the body is longer than ${lineBytesMax} bytes ${curlAdvice}`,
  )
}

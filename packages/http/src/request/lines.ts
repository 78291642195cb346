import { on } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import { RequestError } from '../answer/failures.ts'
import { asRequestError, createPieces, toBuffer } from './body.ts'

/**
 * Requests whose body {@link readLines} reads. It limits the time of each line, so nothing limits that of the whole.
 */
export const timedByLine = new WeakSet<IncomingMessage>()

export interface LineLimits {
  readonly lineBytesMax: number
  /** For each line to arrive. Time in which the caller does not read is not counted. */
  readonly lineTimeoutMs: number
  /** Ends reading. */
  readonly ending?: AbortSignal | undefined
}

const newline = 0x0a
const carriageReturn = 0x0d

/**
 * Yields the lines of a body as they arrive, several at a time. Reads only while the caller asks for lines. The last
 * newline is optional.
 *
 * @param onBytes receives the size of each chunk, and may throw
 * @throws RequestError `body-too-large` for a line, `request-timeout`, `draining`, `bad-request`, or the error of the
 *   body
 */
export async function* readLines(
  body: Readable,
  request: IncomingMessage,
  { lineBytesMax, lineTimeoutMs, ending }: LineLimits,
  onBytes: (bytes: number) => void,
): AsyncGenerator<Iterable<Buffer>, void, void> {
  const fail = (error: RequestError) => body.emit('error', error)
  const late = () => fail(new RequestError('request-timeout', 'a line of the body did not arrive in time'))
  const stop = () => fail(new RequestError('draining', 'the server is shutting down'))
  timedByLine.add(request)
  let timer = setTimeout(late, lineTimeoutMs)
  const open = createPieces()
  const closed = (rest: Buffer) => {
    if (open.length() === 0) return rest
    open.add(rest)
    return open.take()
  }
  const whole = (line: Buffer) => {
    if (line.length > lineBytesMax + Number(line.at(-1) === carriageReturn)) throw tooLong(lineBytesMax)
    return line
  }
  // One by one: a line that is not kept costs the garbage collector nothing.
  function* linesIn(bytes: Buffer) {
    let start = 0
    for (let end = bytes.indexOf(newline); end !== -1; end = bytes.indexOf(newline, start)) {
      yield whole(start === 0 ? closed(bytes.subarray(0, end)) : bytes.subarray(start, end))
      start = end + 1
    }
  }
  try {
    const chunks = on(body, 'data', { close: ['end'], highWaterMark: 1 })
    ending?.addEventListener('abort', stop)
    if (ending?.aborted) stop()
    for await (const [chunk] of chunks) {
      const bytes = toBuffer(chunk)
      onBytes(bytes.length)
      const end = bytes.lastIndexOf(newline) + 1
      if (end > 0) {
        clearTimeout(timer)
        yield linesIn(bytes.subarray(0, end))
        timer = setTimeout(late, lineTimeoutMs)
      }
      open.add(bytes.subarray(end))
      // One byte more may be a carriage return.
      if (open.length() > lineBytesMax + 1) throw tooLong(lineBytesMax)
    }
    const last = open.take()
    if (last.length > 0) yield [whole(last)]
  } catch (error) {
    throw asRequestError(error)
  } finally {
    clearTimeout(timer)
    ending?.removeEventListener('abort', stop)
  }
}

export function isEmptyLine(line: Buffer): boolean {
  return line.length === 0 || (line.length === 1 && line[0] === carriageReturn)
}

function tooLong(lineBytesMax: number): RequestError {
  return new RequestError('body-too-large', `a line of the body is longer than ${lineBytesMax} bytes`)
}

import { createWriteStream, fstatSync } from 'node:fs'
import type { Writable } from 'node:stream'
import { fileReason, printable } from '@plant-store/engine'
import { CommandError, exitCodes } from './command-error.ts'

/** Standard output or standard error. Tests put streams without a descriptor there. */
type StandardStream = Writable & {
  readonly fd?: number | undefined
  readonly isTTY?: boolean | undefined
}

/** Keeps a failure of a stream from ending the process. Each write reports its own. */
export function ignoreStreamErrors(): void {
  process.stdout.on('error', () => {})
  process.stderr.on('error', () => {})
}

/**
 * Writes all pieces and resolves once the system has taken the last byte.
 *
 * @throws CommandError if it does not, with the exit code `outputClosed` if the
 *   reader left
 */
export async function writeToStream(
  stream: StandardStream,
  pieces: Iterable<string> | AsyncIterable<string>,
): Promise<void> {
  const destination = destinationOf(stream)
  const isTerminal = stream.isTTY === true
  for await (const piece of pieces) {
    const text = isTerminal ? printableLines(piece) : piece
    await write(destination, text)
  }
}

/** Escapes what a terminal would obey, but keeps the line ends. */
export function printableLines(text: string): string {
  return text.split('\n').map(printable).join('\n')
}

function write(destination: Writable, piece: string): Promise<void> {
  return new Promise<void>((resolve, reject) => {
    destination.write(piece, error => {
      if (error) {
        reject(error)
      } else {
        resolve()
      }
    })
  }).catch(throwOutputError)
}

function throwOutputError(cause: unknown): never {
  if ((cause as NodeJS.ErrnoException).code === 'EPIPE') {
    throw new CommandError('the output was closed', exitCodes.outputClosed)
  }
  throw new CommandError(`the output could not be written: ${fileReason(cause)}`)
}

/**
 * Returns a stream that writes to the same place. For a file, that is not Node's own
 * stream, because it ignores that a nearly full disk takes only a part of a write.
 */
function destinationOf(stream: StandardStream): Writable {
  const { fd } = stream
  if (fd === undefined || !fstatSync(fd).isFile()) {
    return stream
  }
  const destination = createWriteStream('', { fd, autoClose: false })
  // Each write reports its failure. Without a listener, the event would end the
  // process.
  return destination.on('error', () => {})
}

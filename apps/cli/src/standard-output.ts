import { createWriteStream, fstatSync } from 'node:fs'
import type { Writable } from 'node:stream'
import { finished } from 'node:stream/promises'
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
 * @throws CommandError if it does not, with the exit code `outputClosed` if the reader left
 */
export async function writeToStream(
  stream: StandardStream,
  pieces: Iterable<string> | AsyncIterable<string>,
): Promise<void> {
  const destination = isFile(stream) ? openDescriptor(stream) : stream
  for await (const piece of pieces) {
    await write(destination, stream.isTTY ? printableLines(piece) : piece)
  }
  if (destination !== stream) {
    destination.end()
    await finished(destination).catch(throwOutputError)
  }
}

/** Escapes what a terminal would obey, but keeps the line ends. */
export function printableLines(text: string): string {
  return text.split('\n').map(printable).join('\n')
}

function write(destination: Writable, piece: string): Promise<void> {
  return new Promise<void>((resolve, reject) => {
    destination.write(piece, error => (error ? reject(error) : resolve()))
  }).catch(throwOutputError)
}

function throwOutputError(cause: unknown): never {
  if ((cause as NodeJS.ErrnoException).code === 'EPIPE') {
    throw new CommandError('the output was closed', exitCodes.outputClosed)
  }
  throw new CommandError(`the output could not be written: ${fileReason(cause)}`)
}

function isFile({ fd }: StandardStream): boolean {
  return fd !== undefined && fstatSync(fd).isFile()
}

/**
 * Opens another stream on the descriptor of a file. Node's own stream ignores that a nearly
 * full disk takes only a part of a write.
 */
function openDescriptor({ fd }: StandardStream): Writable {
  const destination = createWriteStream('', { fd: fd as number, autoClose: false })
  // Each write reports its failure. Without a listener, the event would end the process.
  return destination.on('error', () => {})
}

import { createWriteStream, fstatSync } from 'node:fs'
import type { Writable } from 'node:stream'
import { promisify } from 'node:util'
import { codeOf, printable, reasonOf } from '@plant-store/engine'
import { CommandError, exitCodes } from './command-error.ts'

/** Standard output or standard error. Tests put streams without a descriptor there. */
type StandardStream = Writable & {
  readonly fd?: number | undefined
  readonly isTTY?: boolean | undefined
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
  const write = promisify((text: string, done: (error?: Error | null) => void) =>
    destination.write(text, done),
  )
  for await (const piece of pieces) {
    await write(stream.isTTY ? printableLines(piece) : piece).catch(throwOutputError)
  }
}

/** Escapes what a terminal would obey, but keeps the line ends. */
export function printableLines(text: string): string {
  return text.split('\n').map(printable).join('\n')
}

function throwOutputError(cause: unknown): never {
  if (codeOf(cause) === 'EPIPE') {
    throw new CommandError('the output was closed', exitCodes.outputClosed)
  }
  throw new CommandError(`the output could not be written: ${reasonOf(cause)}`)
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

export interface Output {
  readonly json?: boolean | undefined
  /**
   * The file of the command. With `-`, standard output, the result goes to standard
   * error.
   */
  readonly file?: string
}

/**
 * Prints a result: JSON for programs, a sentence for people. Escapes names that contain
 * control characters, because a terminal would obey them.
 *
 * @throws CommandError if the result cannot be written
 */
export async function print(
  { json, file }: Output,
  result: unknown,
  words: string,
): Promise<void> {
  const stream = file === '-' ? process.stderr : process.stdout
  const text = json ? JSON.stringify(result) : words
  await writeToStream(stream, [`${printableLines(text)}\n`])
}

/**
 * Prints a new secret.
 *
 * @param undo removes what has the secret. It is called if the secret cannot be
 *   printed, because nobody has seen it then
 * @throws CommandError like {@link print}
 */
export async function printSecret(
  output: Output,
  result: object,
  secret: string,
  undo: () => Promise<unknown>,
): Promise<void> {
  await print(output, result, secret).catch(async error => {
    await undo()
    throw error
  })
}

/**
 * Returns a table, whose cells stand below each other, with their names at the head.
 *
 * @param emptyWords what it returns instead of a table without rows
 */
export function table(
  entries: readonly Readonly<Record<string, string>>[],
  emptyWords: string,
): string {
  const [first] = entries
  if (first === undefined) {
    return emptyWords
  }
  const names = Object.keys(first)
  const body = entries.map(entry => Object.values(entry))
  const rows = [names, ...body].map(row => row.map(printable))
  const widths = names.map((_, column) =>
    Math.max(...rows.map(row => row[column]?.length ?? 0)),
  )
  const lines = rows.map(row =>
    row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '),
  )
  return lines.map(line => line.trimEnd()).join('\n')
}

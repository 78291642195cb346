import { isUtf8 } from 'node:buffer'
import type { Plant } from '@plant-store/domain'

/** A file format that reads back exactly the plants it writes. */
export interface Format {
  readonly header: string
  write(plants: readonly Plant[]): string
  /** The memory depends only on the longest line. */
  read(chunks: AsyncIterable<Buffer>, lineBytesMax: number): AsyncGenerator<Entry[]>
}

/** A line of a file, or several lines of one quoted record. */
interface Line {
  /** From 1. Of several lines, the first. */
  readonly line: number
  /** Without the line end. Only the beginning of a line that is too long. */
  readonly raw: Buffer
}
export type Rejected = Line & { readonly reason: string }
export type Entry = Rejected | (Line & { readonly plant: Plant })

/** Longer than any line that a store with the default body limit exports. */
export const lineBytesMaxDefault = 16 * 1024 * 1024

const newline = 0x0a
const carriageReturn = 0x0d

/** Splits a file into pieces of whole lines. Drops the middle of a line that is too long, which bounds the memory. */
export async function* wholeLines(
  chunks: AsyncIterable<Buffer>,
  lineBytesMax: number,
): AsyncGenerator<Buffer> {
  /** The start of an unfinished line. */
  let rest: Buffer[] = []
  let restBytes = 0
  for await (const chunk of chunks) {
    const start = restBytes > lineBytesMax ? chunk.indexOf(newline) : 0
    if (start === -1) {
      continue
    }
    const end = chunk.lastIndexOf(newline) + 1
    if (end > 0) {
      yield Buffer.concat([...rest, chunk.subarray(start, end)])
      rest = []
      restBytes = 0
    }
    rest.push(chunk.subarray(end))
    restBytes += chunk.length - end
  }
  yield Buffer.concat(rest)
}

/** Returns the position after the line that begins here. */
export function endOfLine(piece: Buffer, at: number): number {
  const found = piece.indexOf(newline, at)
  return found === -1 ? piece.length : found + 1
}

export function withoutLineEnd(lines: Buffer): Buffer {
  const end = lines.at(-1) === newline ? lines.length - 1 : lines.length
  return lines.subarray(0, lines[end - 1] === carriageReturn ? end - 1 : end)
}

const shownBytesMax = 1024

/** @param read returns the plant in the line, or throws its fault */
export function judge(
  { line, raw }: Line,
  lineBytesMax: number,
  read: () => Plant,
): Entry {
  if (raw.length > lineBytesMax) {
    const reason = `the line is longer than ${lineBytesMax} bytes, of which these are the first`
    // A copy, as the piece can be collected then.
    return { line, raw: Buffer.from(raw.subarray(0, shownBytesMax)), reason }
  }
  if (!isUtf8(raw)) {
    return { line, raw, reason: 'the line is not UTF-8' }
  }
  try {
    return { line, raw, plant: read() }
  } catch (error) {
    return { line, raw, reason: (error as Error).message }
  }
}

import { isUtf8 } from 'node:buffer'
import { type Plant, parsePlant, plantMembers } from '@plant-store/domain'
import { messageOf } from '@plant-store/engine'

/** A file format that reads back exactly the plants it writes. */
export interface Format {
  readonly header: string
  write(plants: readonly Plant[]): string
  createReader<Item>(reading: Reading<Item>): Reader<Item>
}

/** Reads one file. */
export interface Reader<Item> {
  /** Needs memory for the longest line, not for the file. */
  read(chunks: AsyncIterable<Buffer>): AsyncGenerator<Entry<Item>[]>
  /**
   * Returns what begins a file of rejected lines. It is known once a line is rejected.
   */
  rejectsHead(): Buffer
  /** Returns what a file of rejected lines has for one of them. */
  rejectsLine(rejected: Rejected): Buffer
}

/** How the lines of a file become items, such as plants. */
export interface Reading<Item> extends ItemReading<Item>, LineReading {}

export interface LineReading {
  readonly lineBytesMax: number
  readonly lineEnd: LineEnd
}

export interface ItemReading<Item> {
  /** The members that every record needs, and so the columns of CSV. */
  readonly required: readonly (keyof Plant)[]
  /** @throws Error with the faults of the record */
  readonly parse: (record: unknown) => Item
}

/** The members of a plant, and so the columns of CSV. */
export const members = Object.keys(plantMembers) as readonly (keyof Plant)[]

export const plantReading: ItemReading<Plant> = {
  required: members.filter(member => plantMembers[member].isRequired),
  parse: parsePlant,
}

/** A line of a file, or the lines of one quoted record. */
interface Line {
  /**
   * The number of the line, counted from 1. For a record of several lines, that of the
   * first.
   */
  readonly line: number
  /** The bytes without the line end. Only the first of them if the line is too long. */
  readonly raw: Buffer
}
export type Rejected = Line & { readonly reason: string }
export type Entry<Item = Plant> = Rejected | (Line & { readonly item: Item })

/** Longer than any line that a store with the default body limit exports. */
export const lineBytesMaxDefault = 16 * 1024 * 1024

export const lineFeed = 0x0a
export const carriageReturn = 0x0d

/** The byte that ends each line. A CR before an LF belongs to the end, too. */
export type LineEnd = typeof lineFeed | typeof carriageReturn

/** Returns what ends the first line. Excel's "CSV (Macintosh)" has CR alone. */
export function lineEndOf(beginning: Buffer): LineEnd {
  // An LF may follow a CR at the end of what is known.
  const isReturnAlone = /^[^\r\n]*\r[^\n]/.test(beginning.toString('latin1'))
  return isReturnAlone ? carriageReturn : lineFeed
}

/**
 * Splits a file into pieces of whole lines. Drops the middle of a line that is too
 * long, which bounds the memory.
 */
export async function* wholeLines(
  chunks: AsyncIterable<Buffer>,
  { lineBytesMax, lineEnd }: LineReading,
): AsyncGenerator<Buffer> {
  /** The start of an unfinished line. */
  let rest: Buffer[] = []
  let restBytes = 0
  for await (const chunk of chunks) {
    const start = restBytes > lineBytesMax ? chunk.indexOf(lineEnd) : 0
    if (start === -1) {
      continue
    }
    const end = chunk.lastIndexOf(lineEnd) + 1
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
export function endOfLine(piece: Buffer, start: number, lineEnd: LineEnd): number {
  const endAt = piece.indexOf(lineEnd, start)
  if (endAt === -1) {
    return piece.length
  }
  return endAt + 1
}

export function withoutLineEnd(lines: Buffer, lineEnd: LineEnd): Buffer {
  let end = lines.length
  if (lines[end - 1] === lineEnd) {
    end--
  }
  if (lineEnd === lineFeed && lines[end - 1] === carriageReturn) {
    end--
  }
  return lines.subarray(0, end)
}

const shownBytesMax = 1024

/** @param read returns the record in the line, or throws its fault */
export function judge<Item>(
  { line, raw }: Line,
  { lineBytesMax, parse }: Reading<Item>,
  read: () => unknown,
): Entry<Item> {
  if (raw.length > lineBytesMax) {
    const reason = `the line is longer than ${lineBytesMax} bytes, of which these are the first`
    // Copy the beginning, so that the memory of the whole piece can be freed.
    return { line, raw: Buffer.from(raw.subarray(0, shownBytesMax)), reason }
  }
  if (!isUtf8(raw)) {
    return { line, raw, reason: 'the line is not UTF-8' }
  }
  try {
    return { line, raw, item: parse(read()) }
  } catch (error) {
    return { line, raw, reason: messageOf(error) }
  }
}

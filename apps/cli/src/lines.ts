import { type Plant, parsePlant } from '@plant-store/domain'

/** A line of a file of plants (or several, where quotes hold them together): a plant, or what is wrong with it. */
export type Entry = Accepted | Rejected

export interface Accepted {
  /** Its number in the file, or that of its first, from 1. */
  readonly line: number
  readonly raw: string
  readonly plant: Plant
}

export interface Rejected {
  readonly line: number
  /** Bytes where they are not text, or not all of the line. */
  readonly raw: string | Buffer
  readonly reason: string
}

/** Reads a file's plants piece by piece, in memory that depends on its longest line only. */
export type ReadEntries = (pieces: AsyncIterable<Piece>, lineBytesMax: number) => AsyncGenerator<Entry[]>

/** Some whole lines of a file, or the beginning of one that is too long to be read. */
export type Piece = Buffer | { readonly beginning: Buffer }

/** Longer than any line that a store with the default body limit exports. */
export const lineBytesMaxDefault = 16 * 1024 * 1024

const beginningBytes = 1024
const newline = 0x0a

export async function* wholeLines(
  chunks: AsyncIterable<Buffer>,
  lineBytesMax: number,
): AsyncGenerator<Piece> {
  /** The beginning of a line whose end has not come, as it came. */
  let rest: Buffer[] = []
  let restBytes = 0
  let tooLong: { readonly beginning: Buffer } | undefined

  for await (let chunk of chunks) {
    if (tooLong !== undefined) {
      const end = chunk.indexOf(newline)
      if (end === -1) continue
      yield tooLong
      tooLong = undefined
      chunk = chunk.subarray(end + 1)
    }
    const end = chunk.lastIndexOf(newline) + 1
    if (end > 0) {
      yield Buffer.concat([...rest, chunk.subarray(0, end)])
      rest = []
      restBytes = 0
    }
    rest.push(chunk.subarray(end))
    restBytes += chunk.length - end
    if (restBytes > lineBytesMax) {
      tooLong = { beginning: Buffer.concat(rest, beginningBytes) }
      rest = []
      restBytes = 0
    }
  }
  if (tooLong !== undefined) yield tooLong
  if (restBytes > 0) yield Buffer.concat(rest)
}

/** Lines as text; where some of them are not UTF-8, each byte of all of them is a code unit. */
export interface Text {
  readonly text: string
  readonly isBytes: boolean
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export function decode(bytes: Buffer): Text {
  try {
    return { text: utf8.decode(bytes), isBytes: false }
  } catch {
    return { text: bytes.toString('latin1'), isBytes: true }
  }
}

/**
 * Judges a line.
 *
 * @param raw as {@link decode} gave it
 * @param read makes the members of a plant of the text; what it throws is what is wrong with the line
 */
export function judge(
  line: number,
  raw: string,
  { isBytes, lineBytesMax }: { isBytes: boolean; lineBytesMax: number },
  read: (text: string) => unknown,
): Entry {
  const bytes = isBytes ? Buffer.from(raw, 'latin1') : undefined
  if (raw.length > lineBytesMax / 3 && (bytes?.length ?? Buffer.byteLength(raw)) > lineBytesMax) {
    return tooLong(line, { beginning: (bytes ?? Buffer.from(raw)).subarray(0, beginningBytes) }, lineBytesMax)
  }
  let text = raw
  try {
    if (bytes !== undefined) text = utf8.decode(bytes)
  } catch {
    return { line, raw: bytes as Buffer, reason: 'the line is not UTF-8' }
  }
  try {
    return { line, raw: text, plant: parsePlant(read(text)) }
  } catch (error) {
    return { line, raw: text, reason: (error as Error).message }
  }
}

export function tooLong(line: number, { beginning }: { beginning: Buffer }, lineBytesMax: number): Rejected {
  return {
    line,
    raw: beginning,
    reason: `the line is longer than ${lineBytesMax} bytes, of which these are the first`,
  }
}

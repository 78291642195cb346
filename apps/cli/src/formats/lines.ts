import { isUtf8 } from 'node:buffer'
import type { Plant } from '@plant-store/domain'

/** A file format that reads back exactly the plants it writes. */
export interface Format {
  readonly header: string
  write(plants: readonly Plant[]): string
  /** Reads {@link wholeLines}. The memory depends only on the longest line. */
  read(pieces: AsyncIterable<Buffer>, lineBytesMax: number): AsyncGenerator<Entry<Plant>[]>
}

/** A line of a file, or several lines of one quoted record: its value, or its fault. */
export type Entry<Value> = { readonly line: number; readonly raw: string; readonly value: Value } | Rejected

export interface Rejected {
  /** From 1. Of several lines, the first. */
  readonly line: number
  /** Bytes if they are not UTF-8, or only part of the line. */
  readonly raw: string | Buffer
  readonly reason: string
}

/** Longer than any line that a store with the default body limit exports. */
export const lineBytesMaxDefault = 16 * 1024 * 1024

const newline = 0x0a

/** Splits a file into pieces of whole lines. Drops the middle of a line that is too long, which bounds the memory. */
export async function* wholeLines(
  chunks: AsyncIterable<Buffer>,
  lineBytesMax: number,
): AsyncGenerator<Buffer> {
  /** The start of an unfinished line. */
  let rest: Buffer[] = []
  let restBytes = 0
  for await (let chunk of chunks) {
    if (restBytes > lineBytesMax) {
      const end = chunk.indexOf(newline)
      if (end === -1) continue
      chunk = chunk.subarray(end)
    }
    const end = chunk.lastIndexOf(newline) + 1
    if (end > 0) {
      yield Buffer.concat([...rest, chunk.subarray(0, end)])
      rest = []
      restBytes = 0
    }
    rest.push(chunk.subarray(end))
    restBytes += chunk.length - end
  }
  yield Buffer.concat(rest)
}

export type Encoding = 'utf8' | 'latin1'

/** Returns lines as text: UTF-8, or else one character for each byte. */
export function decode(bytes: Buffer): { text: string; encoding: Encoding } {
  const encoding = isUtf8(bytes) ? 'utf8' : 'latin1'
  return { text: bytes.toString(encoding), encoding }
}

export function endOfLine(text: string, at: number): number {
  const found = text.indexOf('\n', at)
  return found === -1 ? text.length : found + 1
}

export function withoutLineEnd(line: string): string {
  const end = line.endsWith('\n') ? line.length - 1 : line.length
  return line.slice(0, line[end - 1] === '\r' ? end - 1 : end)
}

export interface LineRules {
  readonly encoding: Encoding
  readonly lineBytesMax: number
}

export function isTooLong(raw: string, { encoding, lineBytesMax }: LineRules): boolean {
  return Buffer.byteLength(raw, encoding) > lineBytesMax
}

const shownBytesMax = 1024

/** @param read returns the value of the line, or throws its fault */
export function judge<Value>(
  line: number,
  raw: string,
  rules: LineRules,
  read: (text: string) => Value,
): Entry<Value> {
  const { encoding, lineBytesMax } = rules
  if (isTooLong(raw, rules)) {
    const shown = Buffer.from(raw.slice(0, shownBytesMax), encoding).subarray(0, shownBytesMax)
    const reason = `the line is longer than ${lineBytesMax} bytes, of which these are the first`
    return { line, raw: shown, reason }
  }
  const bytes = encoding === 'latin1' ? Buffer.from(raw, encoding) : undefined
  if (bytes && !isUtf8(bytes)) return { line, raw: bytes, reason: 'the line is not UTF-8' }
  const text = bytes ? bytes.toString() : raw
  try {
    return { line, raw: text, value: read(text) }
  } catch (error) {
    return { line, raw: text, reason: (error as Error).message }
  }
}

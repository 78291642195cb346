import { type Input, openInput } from '../files/input-file.ts'
import { detectFormat, type FormatName, formats } from '../formats/formats.ts'
import {
  type Entry,
  type ItemReading,
  lineBytesMaxDefault,
  lineEndOf,
} from '../formats/lines.ts'
import { showProgress } from '../progress.ts'

interface LinesOptions {
  readonly format?: FormatName | undefined
  readonly lineLimit?: number
  readonly json?: boolean | undefined
}

/**
 * Opens the lines of a file, as `import` and `remove` read them. Reading on shows that
 * the part before has been dealt with.
 *
 * @param from the path of a file, or `-` for standard input
 */
export async function openLines<Item>(
  from: string,
  reading: ItemReading<Item>,
  options: LinesOptions,
  signal: AbortSignal,
) {
  const { lineLimit: lineBytesMax = lineBytesMaxDefault, json } = options
  const input = await openInput(from, signal)
  const format = detectFormat(input.beginning, from, options.format)
  const lineEnd = lineEndOf(input.beginning)
  const reader = formats[format].createReader({ ...reading, lineBytesMax, lineEnd })
  const parts = inParts(reader.read(input.chunks), signal)
  return { format, reader, parts: withProgress(parts, input, !json) }
}

async function* withProgress<Item>(
  parts: AsyncIterable<readonly Entry<Item>[]>,
  { bytes, bytesRead }: Input,
  isShown: boolean,
): AsyncGenerator<readonly Entry<Item>[]> {
  using progress = await showProgress('plant', isShown)
  let lines = 0
  for await (const part of parts) {
    yield part
    lines += part.length
    progress.update(lines, bytesRead(), bytes)
  }
}

/** Returns words such as `none is in plants.csv`, for a file without plants. */
export function noneIn(from: string): string {
  return `none is in ${from === '-' ? 'standard input' : from}`
}

/**
 * How many plants are handed to the store at once. It makes some transactions of them. A
 * transaction takes up to a few tenths of a second, in which nothing else can write to a
 * store in a file.
 */
const partPlants = 10_000
const partBytesMax = 16 * 1024 * 1024

/** Yields parts of the lines. An interruption ends them with the lines read so far. */
export async function* inParts<Item>(
  pieces: AsyncIterable<readonly Entry<Item>[]>,
  signal: AbortSignal,
): AsyncGenerator<readonly Entry<Item>[]> {
  let part: Entry<Item>[] = []
  let bytes = 0
  try {
    for await (const entries of pieces) {
      for (const entry of entries) {
        part.push(entry)
        bytes += entry.raw.length
        if (part.length < partPlants && bytes < partBytesMax) {
          continue
        }
        yield part
        part = []
        bytes = 0
      }
    }
  } catch (error) {
    if (!signal.aborted) {
      throw error
    }
  }
  yield part
}

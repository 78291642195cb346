import { parsePlant } from '@plant-store/domain'
import { parseJsonRecord, writeJsonRecord } from '@plant-store/json'
import { CommandError } from '../command-error.ts'
import { csv } from './csv.ts'
import {
  type Entry,
  endOfLine,
  type Format,
  judge,
  wholeLines,
  withoutLineEnd,
} from './lines.ts'

/** One JSON object a line, as in POST /plants. Blank lines are ignored. */
const ndjson: Format = {
  header: '',
  write: plants => plants.map(plant => `${writeJsonRecord(plant)}\n`).join(''),
  async *read(chunks, lineBytesMax) {
    let line = 1
    for await (const piece of wholeLines(chunks, lineBytesMax)) {
      const entries: Entry[] = []
      for (let at = 0, end: number; at < piece.length; at = end, line++) {
        end = endOfLine(piece, at)
        const raw = withoutLineEnd(piece.subarray(at, end))
        const text = raw.length > lineBytesMax ? 'too long' : raw.toString()
        if (text.trim() !== '') {
          entries.push(
            judge({ line, raw }, lineBytesMax, () => parsePlant(parseJsonRecord(text))),
          )
        }
      }
      yield entries
    }
  },
}

export const formats = { ndjson, csv }
export type FormatName = keyof typeof formats
export const formatNames = Object.keys(formats) as FormatName[]

/** Returns the given format, or the one that the first character indicates. */
export function detectFormat(
  beginning: Buffer,
  from: string,
  given?: FormatName,
): FormatName {
  const first = beginning.toString().trimStart()[0]
  if (given !== 'csv' && first === '[') {
    throw new CommandError(
      `${from}: must have one JSON object on each line, not a JSON array`,
    )
  }
  return given ?? (first === undefined || first === '{' ? 'ndjson' : 'csv')
}

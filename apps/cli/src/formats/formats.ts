import { isUtf8 } from 'node:buffer'
import { parseJsonRecord, writeJsonRecord } from '@plant-store/json'
import { CommandError, exitCodes } from '../command-error.ts'
import { csv } from './csv.ts'
import {
  type Entry,
  endOfLine,
  type Format,
  judge,
  lineEndOf,
  type Reading,
  wholeLines,
  withoutLineEnd,
} from './lines.ts'

/** One JSON object a line, as in POST /plants. Blank lines are ignored. */
const ndjson: Format = {
  header: '',
  write: plants => plants.map(plant => `${writeJsonRecord(plant)}\n`).join(''),
  createReader: reading => ({
    read: chunks => readNdjson(chunks, reading),
    rejectsHead: () => Buffer.alloc(0),
    rejectsLine: ({ line, reason, raw }) => {
      const content = isUtf8(raw)
        ? { raw: raw.toString() }
        : { rawBase64: raw.toString('base64') }
      return Buffer.from(`${JSON.stringify({ line, reason, ...content })}\n`)
    },
  }),
}

async function* readNdjson<Item>(
  chunks: AsyncIterable<Buffer>,
  reading: Reading<Item>,
): AsyncGenerator<Entry<Item>[]> {
  const { lineBytesMax, lineEnd } = reading
  let line = 1
  for await (const piece of wholeLines(chunks, reading)) {
    const entries: Entry<Item>[] = []
    let start = 0
    while (start < piece.length) {
      const end = endOfLine(piece, start, lineEnd)
      const raw = withoutLineEnd(piece.subarray(start, end), lineEnd)
      const text = raw.length > lineBytesMax ? 'too long' : raw.toString()
      if (text.trim() !== '') {
        entries.push(judge({ line, raw }, reading, () => parseJsonRecord(text)))
      }
      start = end
      line++
    }
    yield entries
  }
}

export const formats = { ndjson, csv }
export type FormatName = keyof typeof formats
export const formatNames = Object.keys(formats) as FormatName[]

/**
 * Returns the format of a file to write, which its name shows unless it is named.
 *
 * @throws CommandError if the name shows something that is not written
 */
export function formatToWrite(file: string, named?: FormatName): FormatName {
  const other = /\.(?:bz2|gz|tsv|xlsx|xz|zip|zst)$/i.exec(file)?.[0]
  if (other !== undefined) {
    throw new CommandError(
      `${file}: export writes NDJSON or CSV, and compresses neither: pipe its output to a program that writes ${other}`,
      exitCodes.usage,
    )
  }
  return named ?? (/\.csv$/i.test(file) ? 'csv' : 'ndjson')
}

/**
 * Returns the format of a file that begins like this.
 *
 * @param named the format that the user named. It decides
 * @throws CommandError if the file is JSON that does not have one object on each line
 */
export function detectFormat(
  beginning: Buffer,
  from: string,
  named?: FormatName,
): FormatName {
  if (named === 'csv') {
    return 'csv'
  }
  const text = beginning.toString().trimStart()
  if (text.startsWith('[')) {
    throw notOnOneLine(from, 'a JSON array', ".[]'")
  }
  const isObject = text.startsWith('{')
  if (isObject && isPretty(text, beginning)) {
    throw notOnOneLine(from, 'an object on several lines', ".'")
  }
  if (named !== undefined) {
    return named
  }
  if (text === '' || isObject) {
    return 'ndjson'
  }
  return 'csv'
}

function notOnOneLine(from: string, content: string, filter: string) {
  const advice = `convert it with jq -c '${filter} (1.7 or later: earlier versions round ids)`
  return new CommandError(
    `${from}: must have one JSON object on each line, not ${content}: ${advice}`,
  )
}

/** Returns whether the object that JSON begins with goes on in the next line. */
function isPretty(text: string, beginning: Buffer) {
  const lineEnd = String.fromCharCode(lineEndOf(beginning))
  const lines = text.split(lineEnd).map(line => line.trim())
  const [first = '', second = ''] = lines.filter(line => line !== '')
  // A line that was cut is a bad line among others, which begin with a brace.
  return !first.endsWith('}') && second !== '' && !second.startsWith('{')
}

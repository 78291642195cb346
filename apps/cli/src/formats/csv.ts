import { isUtf8 } from 'node:buffer'
import { type Plant, parsePlant, plantMembers } from '@plant-store/domain'
import { parse } from 'csv-parse/sync'
import { stringify } from 'csv-stringify/sync'
import { counted, listed } from '../terminal.ts'
import {
  type Entry,
  endOfLine,
  type Format,
  judge,
  wholeLines,
  withoutLineEnd,
} from './lines.ts'

const allColumns = Object.keys(plantMembers) as readonly (keyof Plant)[]
/** What each field of a record is. Columns without a member are ignored, as unknown members of JSON are. */
type Columns = readonly (keyof Plant | undefined)[]
const requiredColumns = allColumns.filter(column => plantMembers[column].isRequired)
const optionalColumns = allColumns.filter(column => !plantMembers[column].isRequired)

export const columnsInWords = `the columns ${listed(requiredColumns)}, and perhaps ${listed(optionalColumns)}`

const quote = 0x22

/**
 * CSV of RFC 4180 with a header. An optional member is absent if its field is empty, and an empty text if its field is
 * `""`. Broken quotes spoil only the line in which they begin.
 */
export const csv: Format = {
  header: `${allColumns.join(',')}\n`,
  write: plants =>
    stringify([...plants], { columns: [...allColumns], quoted_match: /^$/ }),
  async *read(chunks, lineBytesMax) {
    let columns: Columns = []
    let line = 1
    /** The start of a record whose last quote is still open. */
    let open: Buffer[] = []

    const read = (isLast: boolean) => {
      const { records, rest } = recordsIn(Buffer.concat(open), lineBytesMax, isLast)
      open = [rest]
      const entries: Entry[] = []
      for (const record of records) {
        const raw = withoutLineEnd(record.lines)
        if (columns.length === 0) {
          columns = readHeader(record, lineBytesMax)
        } else if (raw.length > 0) {
          entries.push(
            judge({ line, raw }, lineBytesMax, () =>
              parsePlant(toMembers(record, columns)),
            ),
          )
        }
        for (let at = 0; at < record.lines.length; at = endOfLine(record.lines, at)) {
          line++
        }
      }
      return entries
    }

    for await (const piece of wholeLines(chunks, lineBytesMax)) {
      const openBytes = open.reduce((sum, { length }) => sum + length, 0)
      open.push(piece)
      // What cannot be the end of the record is not read again and again.
      if (openBytes === 0 || openBytes > lineBytesMax || piece.includes(quote)) {
        yield read(false)
      }
    }
    yield read(true)
  },
}

interface CsvRecord {
  readonly lines: Buffer
  /** `undefined` for an empty field without quotes. */
  readonly fields: readonly (string | undefined)[]
  /** Why the line is no record. */
  readonly fault?: string | undefined
}

const unclosed = 'a quote is opened that is never closed'
const faults: Readonly<Record<string, string>> = {
  INVALID_OPENING_QUOTE: 'there is a quote in a field that does not begin with one',
  CSV_INVALID_CLOSING_QUOTE:
    'there is something between a closing quote and the next comma',
  CSV_QUOTE_NOT_CLOSED: unclosed,
}

/** Splits a piece into records, and after a fault begins again at the next line. The rest awaits its closing quote. */
function recordsIn(piece: Buffer, lineBytesMax: number, isLast: boolean) {
  const tooLong = `the record is longer than ${lineBytesMax} bytes, or a quote is never closed`
  const records: CsvRecord[] = []
  let at = 0
  while (at < piece.length) {
    const start = at
    try {
      parse(piece.subarray(start), {
        record_delimiter: ['\r\n', '\n'],
        relax_column_count: true,
        cast: (value, { quoting }) => (value === '' && !quoting ? undefined : value),
        on_record(fields: CsvRecord['fields'], { bytes }) {
          const end = start + bytes
          if (end - at > lineBytesMax && endOfLine(piece, at) < end) {
            throw new Error(tooLong)
          }
          records.push({ lines: piece.subarray(at, end), fields })
          at = end
        },
      })
    } catch (error) {
      const { code = '', message } = error as NodeJS.ErrnoException
      let fault = faults[code] ?? message
      if (fault === unclosed && piece.length - at > lineBytesMax) {
        fault = tooLong
      }
      if (fault === unclosed && !isLast) {
        break
      }
      const end = endOfLine(piece, at)
      records.push({ lines: piece.subarray(at, end), fields: [], fault })
      at = end
    }
  }
  return { records, rest: piece.subarray(at) }
}

/** @throws Error, as every other line depends on the header */
function readHeader({ lines, fields, fault }: CsvRecord, lineBytesMax: number): Columns {
  const invalid = (reason: string) => new Error(`the first line ${reason}`)
  if (withoutLineEnd(lines).length > lineBytesMax) {
    throw invalid('is too long to be a header')
  }
  if (!isUtf8(lines)) {
    throw invalid('is not UTF-8')
  }
  if (fault !== undefined) {
    throw invalid(`is not a CSV header: ${fault}`)
  }
  const columns = fields.map(name => allColumns.find(column => column === name))
  const repeated = columns.find(
    (column, index) => column !== undefined && columns.indexOf(column) !== index,
  )
  if (repeated !== undefined) {
    throw invalid(`names the column ${repeated} twice`)
  }
  const missing = requiredColumns.find(column => !columns.includes(column))
  if (missing !== undefined) {
    throw invalid(`does not name the column ${missing}: it must name ${columnsInWords}`)
  }
  return columns
}

/** @throws Error if the line is no record, or has other fields than the header */
function toMembers({ fields, fault }: CsvRecord, columns: Columns): object {
  if (fault !== undefined) {
    throw new Error(fault)
  }
  if (fields.length !== columns.length) {
    const found = `there ${fields.length === 1 ? 'is' : 'are'} ${counted(fields.length, 'field')}`
    throw new Error(`${found}, and ${columns.length} columns`)
  }
  const members: { -readonly [Column in keyof Plant]?: unknown } = {}
  for (const [index, column] of columns.entries()) {
    if (column === undefined) {
      continue
    }
    const { type, isRequired } = plantMembers[column]
    const text = fields[index] ?? (isRequired ? '' : undefined)
    const isInteger =
      type === 'integer' && text !== undefined && /^-?\d{1,40}$/.test(text)
    // The domain refuses text in the place of an integer.
    members[column] = isInteger ? BigInt(text) : text
  }
  return members
}

import { isUtf8 } from 'node:buffer'
import { type Plant, parsePlant, plantMembers } from '@plant-store/domain'
import { CsvError, parse } from 'csv-parse/sync'
import { stringify } from 'csv-stringify/sync'
import { counted } from '../terminal/output.ts'
import { type Entry, endOfLine, type Format, judge, withoutLineEnd } from './lines.ts'

type Columns = readonly (keyof Plant)[]
const allColumns = Object.keys(plantMembers) as Columns
const requiredColumns = allColumns.filter(column => plantMembers[column].isRequired)
const optionalColumns = allColumns.filter(column => !plantMembers[column].isRequired)

export const columnsInWords = `the columns ${requiredColumns.join(' and ')}, and perhaps ${optionalColumns.join(' and ')}`

/**
 * CSV of RFC 4180 with a header. An optional member is absent if its field is empty, and an empty text if its field is
 * `""`. Broken quotes spoil only the line in which they begin.
 */
export const csv: Format = {
  header: `${allColumns.join(',')}\n`,
  write: plants => stringify([...plants], { columns: [...allColumns], quoted_match: /^$/ }),
  read: readCsv,
}

const quote = 0x22

async function* readCsv(pieces: AsyncIterable<Buffer>, lineBytesMax: number): AsyncGenerator<Entry[]> {
  let columns: Columns | undefined
  let line = 1
  /** The start of a record whose last quote is still open. */
  let open: Buffer[] = []

  const read = (piece: Buffer, isLast: boolean): Entry[] => {
    const entries: Entry[] = []
    let at = 0
    const add = (end: number, fields: () => Fields) => {
      const raw = withoutLineEnd(piece.subarray(at, end))
      if (columns === undefined) {
        columns = readHeader(raw, lineBytesMax, fields)
      } else if (raw.length > 0) {
        const known = columns
        entries.push(judge({ line, raw }, lineBytesMax, () => parsePlant(toMembers(fields(), known))))
      }
      line += linesIn(raw)
      at = end
    }
    while (at < piece.length) {
      const rest = piece.subarray(at)
      const { records, fault } = recordsIn(rest, lineBytesMax)
      const start = at
      for (const { fields, end } of records) add(start + end, () => fields)
      if (fault === undefined) break
      if (fault === unclosed && !isLast) break
      add(endOfLine(piece, at), () => {
        throw new Error(fault)
      })
    }
    open = [piece.subarray(at)]
    return entries
  }

  for await (const piece of pieces) {
    const openBytes = open.reduce((sum, { length }) => sum + length, 0)
    const isStillOpen = openBytes > 0 && openBytes <= lineBytesMax && !piece.includes(quote)
    open.push(piece)
    if (!isStillOpen) yield read(Buffer.concat(open), false)
  }
  yield read(Buffer.concat(open), true)
}

/** `undefined` for an empty field without quotes. */
type Fields = readonly (string | undefined)[]

const unclosed = 'a quote is opened that is never closed'
const faults: Readonly<Record<string, string>> = {
  INVALID_OPENING_QUOTE: 'there is a quote in a field that does not begin with one',
  CSV_INVALID_CLOSING_QUOTE: 'there is something between a closing quote and the next comma',
  CSV_QUOTE_NOT_CLOSED: unclosed,
}

/** Returns the records up to the first fault, each with the position of its end. */
function recordsIn(piece: Buffer, lineBytesMax: number) {
  const records: { fields: Fields; end: number }[] = []
  const tooLong = `the record is longer than ${lineBytesMax} bytes, or a quote is never closed`
  let at = 0
  try {
    parse(piece, {
      record_delimiter: ['\r\n', '\n'],
      relax_column_count: true,
      cast: (value, { quoting }) => (value === '' && !quoting ? undefined : value),
      on_record(fields: Fields, { bytes: end }) {
        const raw = piece.subarray(at, end)
        if (raw.length > lineBytesMax && linesIn(withoutLineEnd(raw)) > 1) throw new Error(tooLong)
        records.push({ fields, end })
        at = end
      },
    })
    return { records, fault: undefined }
  } catch (error) {
    const fault = error instanceof CsvError ? faults[error.code] : tooLong
    if (fault === undefined) throw error
    return { records, fault: fault === unclosed && piece.length - at > lineBytesMax ? tooLong : fault }
  }
}

function linesIn(raw: Buffer): number {
  let lines = 0
  for (let at = 0; at < raw.length; at = endOfLine(raw, at)) lines++
  return Math.max(lines, 1)
}

/** @throws Error, as every other line depends on the header */
function readHeader(raw: Buffer, lineBytesMax: number, read: () => Fields): Columns {
  if (raw.length > lineBytesMax) throw new Error('the first line is too long to be a header')
  if (!isUtf8(raw)) throw new Error('the first line is not UTF-8')
  let names: Fields
  try {
    names = read()
  } catch (error) {
    throw new Error(`the first line is not a CSV header: ${(error as Error).message}`)
  }
  const wanted = `it must name ${columnsInWords}`
  for (const [index, name] of names.entries()) {
    if (!allColumns.includes(name as keyof Plant)) {
      throw new Error(`the first line names an unknown column ${JSON.stringify(name ?? '')}: ${wanted}`)
    }
    if (names.indexOf(name) !== index) throw new Error(`the first line names the column ${name} twice`)
  }
  for (const name of requiredColumns) {
    if (!names.includes(name)) throw new Error(`the first line does not name the column ${name}: ${wanted}`)
  }
  return names as Columns
}

function toMembers(fields: Fields, columns: Columns): object {
  if (fields.length !== columns.length) {
    const found = `there ${fields.length === 1 ? 'is' : 'are'} ${counted(fields.length, 'field')}`
    throw new Error(`${found}, and ${columns.length} columns`)
  }
  const members: { -readonly [Column in keyof Plant]?: unknown } = {}
  for (const [index, column] of columns.entries()) {
    const { type, isRequired } = plantMembers[column]
    const text = fields[index] ?? (isRequired ? '' : undefined)
    members[column] = type === 'integer' && text !== undefined ? toInteger(text) : text
  }
  return members
}

/** Returns text that is not an integer unchanged, for the domain to refuse. */
function toInteger(field: string): bigint | string {
  return /^-?\d{1,40}$/.test(field) ? BigInt(field) : field
}

import assert from 'node:assert/strict'
import { isUtf8 } from 'node:buffer'
import { type Plant, plantMembers } from '@plant-store/domain'
import { codeOf, messageOf } from '@plant-store/engine'
import { parse as parseCsv } from 'csv-parse/sync'
import { stringify } from 'csv-stringify/sync'
import { listed } from '../words.ts'
import {
  members as allColumns,
  carriageReturn,
  type Entry,
  endOfLine,
  type Format,
  judge,
  lineFeed,
  type Reader,
  type Reading,
  type Rejected,
  wholeLines,
  withoutLineEnd,
} from './lines.ts'

type Column = keyof Plant

const quote = 0x22
const blank = 0x20

/** The separators that spreadsheets write, in the order in which they are tried. */
const separators = ',;\t|'

/**
 * CSV of RFC 4180 with a header, and what spreadsheets write instead: other separators,
 * and rows without their last fields. An optional member is absent if its field is
 * empty, and an empty text if its field is `""`. Broken quotes spoil only the line in
 * which they begin.
 */
export const csv: Format = {
  header: `${allColumns.join(',')}\n`,
  write: plants => stringify([...plants], { columns: allColumns, quoted_match: /^$/ }),
  createReader: reading => new CsvReader(reading),
}

/** How the fields of a file are told apart. */
interface Dialect {
  readonly separator: string
  /** Whether blanks beside a separator are no part of a field without quotes. */
  readonly isPadded: boolean
}

/** The meaning of the fields of each record. */
interface Header extends Dialect {
  /** The member in each field, or `undefined` for a column that is ignored. */
  readonly columns: readonly (Column | undefined)[]
  readonly raw: Buffer
}

interface CsvRecord {
  readonly lines: Buffer
  /** The lines without the last line end. */
  readonly raw: Buffer
  /** `undefined` for an empty field without quotes. */
  readonly fields: readonly (string | undefined)[]
  /** Why the line is no record. */
  readonly fault?: string | undefined
}

const unclosed = 'a quote is opened that is never closed'
const surrounded = 'there is something between a closing quote and the next separator'
const faults: Readonly<Record<string, string>> = {
  INVALID_OPENING_QUOTE: 'there is a quote in a field that does not begin with one',
  CSV_INVALID_CLOSING_QUOTE: surrounded,
  CSV_NON_TRIMABLE_CHAR_AFTER_CLOSING_QUOTE: surrounded,
  CSV_QUOTE_NOT_CLOSED: unclosed,
}

class CsvReader<Item> implements Reader<Item> {
  readonly #reading: Reading<Item>
  /** Absent until the first line with content has been read. */
  #header: Header | undefined
  /** The separator that a line such as `sep=;` before the header names. */
  #namedSeparator: string | undefined
  /** The number of the next line. */
  #line = 1
  /** The lines of a record whose last quote is still open. */
  #unfinished: Buffer[] = []

  constructor(reading: Reading<Item>) {
    this.#reading = reading
  }

  async *read(chunks: AsyncIterable<Buffer>): AsyncGenerator<Entry<Item>[]> {
    for await (const piece of wholeLines(chunks, this.#reading)) {
      const bytesBefore = this.#unfinished.reduce((sum, { length }) => sum + length, 0)
      this.#unfinished.push(piece)
      const mayEndRecord = bytesBefore === 0 || piece.includes(quote)
      // Lines that cannot end the record are not parsed again and again.
      if (mayEndRecord || bytesBefore > this.#reading.lineBytesMax) {
        yield this.#read(false)
      }
    }
    yield this.#read(true)
  }

  /**
   * The number and the reason of a rejected line stand before it, in columns that an
   * import ignores. So it takes the file as it is.
   */
  rejectsHead(): Buffer {
    const named = this.#namedSeparator
    const naming = named === undefined ? '' : `sep=${named}${this.#lineEnd}`
    const row = this.#rejectsRow('line', 'reason', this.#knownHeader.raw)
    return Buffer.concat([Buffer.from(naming), row])
  }

  rejectsLine({ line, reason, raw }: Rejected): Buffer {
    // The quotes around the reason end one that is open in the line before.
    const quotedReason = `"${reason.replaceAll('"', '""')}"`
    return this.#rejectsRow(`${line}`, quotedReason, raw)
  }

  #rejectsRow(line: string, reason: string, raw: Buffer): Buffer {
    const { separator } = this.#knownHeader
    const start = [line, reason, ''].join(separator)
    return Buffer.concat([Buffer.from(start), raw, Buffer.from(this.#lineEnd)])
  }

  get #lineEnd(): string {
    return String.fromCharCode(this.#reading.lineEnd)
  }

  get #knownHeader(): Header {
    assert(this.#header !== undefined, 'a record follows the header')
    return this.#header
  }

  #read(isLast: boolean): Entry<Item>[] {
    let piece = Buffer.concat(this.#unfinished)
    while (this.#header === undefined) {
      const linesRead = this.#readHeader(piece, isLast)
      if (linesRead === undefined) {
        this.#unfinished = [piece]
        return []
      }
      this.#countLines(linesRead)
      piece = piece.subarray(linesRead.length)
    }

    const header = this.#header
    const { records, rest } = this.#split(piece, header, isLast)
    this.#unfinished = [rest]
    const entries: Entry<Item>[] = []
    for (const record of records) {
      const { raw } = record
      if (!isWithoutContent(raw, header.separator)) {
        const read = () => membersOf(record, header)
        entries.push(judge({ line: this.#line, raw }, this.#reading, read))
      }
      this.#countLines(record.lines)
    }
    return entries
  }

  /**
   * Reads the header, or a line before it.
   *
   * @returns the lines that it has read, or `undefined` if the piece is only a part
   *   of them
   * @throws Error if the first line with content is no header, because every other line
   *   depends on it
   */
  #readHeader(piece: Buffer, isLast: boolean): Buffer | undefined {
    const { lineEnd } = this.#reading
    if (piece.length === 0) {
      return undefined
    }
    const firstLine = piece.subarray(0, endOfLine(piece, 0, lineEnd))
    const raw = withoutLineEnd(firstLine, lineEnd)
    const separator = /^"?sep=([^\w"])"?$/i.exec(raw.toString())?.[1]
    if (separator !== undefined && this.#line === 1) {
      this.#namedSeparator = separator
      return firstLine
    }
    if (isWithoutContent(raw, separators)) {
      return firstLine
    }

    const dialects = [...(this.#namedSeparator ?? separators)].flatMap(separator => [
      { separator, isPadded: false },
      { separator, isPadded: true },
    ])
    const readings = dialects.map(dialect => ({
      dialect,
      record: this.#split(piece, dialect, isLast, 1).records[0],
    }))
    const fitting = readings.find(({ dialect, record }) => this.#fits(dialect, record))
    // There is no record yet if a quote is still open. With another separator, the same
    // quote may be a fault.
    const mayFitLater = readings.some(({ record }) => record === undefined)
    if (fitting === undefined && mayFitLater) {
      return undefined
    }
    // If none is a header, an error says what is wrong with the first.
    const { dialect, record } = fitting ?? readings[0] ?? {}
    assert(dialect !== undefined && record !== undefined, 'a line has a record')
    const columns = this.#columnsOf(record)
    this.#header = { ...dialect, columns, raw: record.raw }
    return record.lines
  }

  #fits({ isPadded }: Dialect, record: CsvRecord | undefined) {
    if (record === undefined || record.fault !== undefined) {
      return false
    }
    const columns = record.fields.map(columnNamed)
    const hasAll = this.#reading.required.every(column => columns.includes(column))
    const hasBlanks = record.fields.some(
      name => columnNamed(name) !== undefined && name !== name?.trim(),
    )
    return hasAll && (isPadded || !hasBlanks)
  }

  #columnsOf({ raw, fields, fault }: CsvRecord): Header['columns'] {
    const { lineBytesMax, lineEnd, required } = this.#reading
    if (raw.length > lineBytesMax) {
      throw new Error('the header is too long')
    }
    if (!isUtf8(raw)) {
      throw new Error('the header is not UTF-8')
    }
    const invalid = (reason: string) => {
      const start = raw.toString().replace(/^(.{100}).+/su, '$1…')
      return new Error(`the header ${reason}: line ${this.#line} is ${start}`)
    }
    if (fault !== undefined) {
      throw invalid(`is not CSV: ${fault}`)
    }
    if (lineEnd === lineFeed && raw.includes(carriageReturn)) {
      throw invalid('contains a CR without an LF')
    }

    const columns = fields.map(columnNamed)
    const repeated = columns.find(
      (column, index) => column !== undefined && columns.indexOf(column) !== index,
    )
    if (repeated !== undefined) {
      throw invalid(`names the column ${repeated} twice`)
    }
    const missing = required.find(column => !columns.includes(column))
    if (missing !== undefined) {
      const words = columnsInWords(required)
      throw invalid(`does not name the column ${missing} (it must name ${words})`)
    }
    return columns
  }

  /**
   * Splits a piece into records, and after a fault begins again at the next line.
   *
   * @param recordsMax after how many records it stops
   * @returns the records, and the rest: the start of one whose last quote is still open
   */
  #split(
    piece: Buffer,
    { separator, isPadded }: Dialect,
    isLast: boolean,
    recordsMax = Number.MAX_SAFE_INTEGER,
  ) {
    const { lineBytesMax, lineEnd } = this.#reading
    const records: CsvRecord[] = []
    let at = 0
    const add = (end: number, fields: CsvRecord['fields'], fault?: string) => {
      const lines = piece.subarray(at, end)
      records.push({ lines, raw: withoutLineEnd(lines, lineEnd), fields, fault })
      at = end
    }
    while (at < piece.length && records.length < recordsMax) {
      const start = at
      try {
        parseCsv(piece.subarray(start), {
          delimiter: separator,
          record_delimiter: lineEnd === lineFeed ? ['\r\n', '\n'] : '\r',
          relax_column_count: true,
          trim: isPadded,
          to: recordsMax - records.length,
          cast: (field, { quoting }) => (field === '' && !quoting ? undefined : field),
          on_record(fields: CsvRecord['fields'], { bytes }) {
            const end = start + bytes
            // A record of several lines may be too long because its quote is not closed.
            // A single line that is too long is rejected later, as a line.
            const hasSeveralLines = endOfLine(piece, at, lineEnd) < end
            if (end - at > lineBytesMax && hasSeveralLines) {
              throw new Error(unclosed)
            }
            add(end, fields)
          },
        })
      } catch (error) {
        const fault = this.#faultOf(error, piece.length - at)
        if (fault === unclosed && !isLast) {
          break
        }
        add(endOfLine(piece, at, lineEnd), [], fault)
      }
    }
    return { records, rest: piece.subarray(at) }
  }

  /** @param bytesLeft how long the rest of the piece is, which begins with the fault */
  #faultOf(error: unknown, bytesLeft: number) {
    const { lineBytesMax } = this.#reading
    const fault = faults[codeOf(error)] ?? messageOf(error)
    // No more lines are awaited for a quote that is not closed.
    if (fault === unclosed && bytesLeft > lineBytesMax) {
      return `the record is longer than ${lineBytesMax} bytes, or a quote is never closed`
    }
    return fault
  }

  #countLines(lines: Buffer) {
    let at = 0
    while (at < lines.length) {
      at = endOfLine(lines, at, this.#reading.lineEnd)
      this.#line++
    }
  }
}

/** Returns words such as `the columns id and name, and perhaps tag`. */
export function columnsInWords(required: readonly Column[]): string {
  const optional = allColumns.filter(column => !required.includes(column))
  const noun = required.length === 1 ? 'the column' : 'the columns'
  return `${noun} ${listed(required)}, and perhaps ${listed(optional)}`
}

/** Spreadsheets write names as people typed them. */
function columnNamed(name: string | undefined) {
  const spelling = name?.trim().toLowerCase()
  return allColumns.find(column => column === spelling)
}

/** Returns whether a line has nothing but blanks and separators. */
function isWithoutContent(raw: Buffer, candidates: string) {
  return raw.every(
    byte => byte <= blank || candidates.includes(String.fromCharCode(byte)),
  )
}

/** @throws Error if the line is no record, or has more fields than the header */
function membersOf({ fields, fault }: CsvRecord, { columns }: Header): object {
  if (fault !== undefined) {
    throw new Error(fault)
  }
  const surplus = fields.slice(columns.length)
  if (surplus.some(field => field !== undefined)) {
    throw new Error(`there are ${fields.length} fields, and ${columns.length} columns`)
  }

  const members: Partial<Record<Column, unknown>> = {}
  for (const [index, column] of columns.entries()) {
    const text = fields[index]
    // A spreadsheet leaves out the last fields of a row if they are empty.
    if (column !== undefined && text !== undefined) {
      const isInteger =
        plantMembers[column].type === 'integer' && /^-?\d{1,40}$/.test(text)
      // The domain refuses a text in the place of an integer.
      members[column] = isInteger ? BigInt(text) : text
    }
  }
  return members
}

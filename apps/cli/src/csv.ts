import type { Plant } from '@plant-store/domain'
import { decode, type Entry, judge, type ReadEntries, type Text, tooLong } from './lines.ts'

/**
 * RFC 4180 with a header, in two points more exact than it: an optional text that is empty and not quoted is absent,
 * where `""` is an empty one; and where quotes are broken, the line that they begin in is refused and reading goes on
 * with the next.
 */
export const readCsv: ReadEntries = async function* (pieces, lineBytesMax) {
  let columns: Columns | undefined
  let line = 1
  /** Lines of a record whose last quote is still open, as they came. */
  let open: Buffer[] = []

  const read = (bytes: Buffer, isLast: boolean): Entry[] => {
    const decoded = decode(bytes)
    const { text, isBytes } = decoded
    const entries: Entry[] = []
    let at = 0
    while (at < text.length) {
      const record = recordAt(text, at)
      if (record === undefined && !isLast && !(at === 0 && bytes.length > lineBytesMax)) break
      const end = record?.end ?? endOfLine(text, at)
      const raw = withoutLineEnd(text.slice(at, end))
      const fields = record?.fields ?? 'a quote is opened that is never closed'
      if (columns === undefined) columns = readHeader(fields)
      else if (raw !== '') {
        const known = columns
        entries.push(judge(line, raw, { isBytes, lineBytesMax }, () => toMembers(fields, known, isBytes)))
      }
      line += countLines(text, at, end)
      at = end
    }
    open = at < text.length ? [bytes.subarray(byteLength(decoded, at))] : []
    return entries
  }

  for await (const piece of pieces) {
    if ('beginning' in piece) {
      const before = read(Buffer.concat(open), true)
      if (columns === undefined) throw new HeaderError('the first line is too long to be a header')
      yield [...before, tooLong(line++, piece, lineBytesMax)]
    } else if (open.length > 0 && !piece.includes(quote) && lengthOf(open) <= lineBytesMax) {
      open.push(piece)
    } else {
      yield read(Buffer.concat([...open, piece]), false)
    }
  }
  yield read(Buffer.concat(open), true)
}

const quote = 0x22

function lengthOf(buffers: readonly Buffer[]): number {
  return buffers.reduce((sum, { length }) => sum + length, 0)
}

/** What is wrong with the first line, on which the meaning of all others depends. */
export class HeaderError extends Error {
  override readonly name = 'HeaderError'
}

/** A field: `undefined` where there is nothing between the commas, not even quotes. */
type Field = string | undefined
/** The fields of a record, or what is wrong with it. */
type Fields = readonly Field[] | string
type Columns = readonly (keyof Plant)[]

/** A member of a plant as a field: one that is forgotten does not compile. */
const presence = { id: 'required', name: 'required', tag: 'optional' } as const satisfies {
  readonly [Member in keyof Required<Plant>]: 'required' | 'optional'
}
const allColumns = Object.keys(presence) as Columns
const columnsThatAre = (wanted: 'required' | 'optional') =>
  allColumns.filter(column => presence[column] === wanted)
const requiredColumns = columnsThatAre('required')

/** What a header has to name, and what it may. */
export const columnsInWords = `the columns ${requiredColumns.join(' and ')}, and perhaps ${columnsThatAre('optional').join(' and ')}`

function readHeader(fields: Fields): Columns {
  if (typeof fields === 'string') throw new HeaderError(`the first line is no CSV header: ${fields}`)
  const wanted = `CSV begins with a line that names ${columnsInWords}`
  for (const [index, name] of fields.entries()) {
    if (!allColumns.includes(name as keyof Plant)) {
      throw new HeaderError(`the first line names an unknown column ${JSON.stringify(name ?? '')}: ${wanted}`)
    }
    if (fields.indexOf(name) !== index) throw new HeaderError(`the first line names the column ${name} twice`)
  }
  for (const name of requiredColumns) {
    if (!fields.includes(name))
      throw new HeaderError(`the first line does not name the column ${name}: ${wanted}`)
  }
  return fields as Columns
}

/** The members of a plant, as JSON would have given them. */
function toMembers(fields: Fields, columns: Columns, isBytes: boolean): object {
  if (typeof fields === 'string') throw new Error(fields)
  if (fields.length !== columns.length) {
    throw new Error(`there are ${fields.length} fields, and ${columns.length} columns`)
  }
  const members: { -readonly [Column in keyof Plant]?: unknown } = {}
  for (const [index, column] of columns.entries()) {
    const field = isBytes ? fromBytes(fields[index]) : fields[index]
    if (column === 'id') members.id = toInteger(field ?? '')
    else members[column] = field ?? (presence[column] === 'optional' ? undefined : '')
  }
  return members
}

/** What is not an integer is left for the domain to refuse. */
function toInteger(field: string): bigint | string {
  return /^-?\d{1,40}$/.test(field) ? BigInt(field) : field
}

function fromBytes(field: Field): Field {
  return field && Buffer.from(field, 'latin1').toString()
}

interface CsvRecord {
  readonly fields: Fields
  /** Where the next one begins. */
  readonly end: number
}

/** @returns `undefined` when the text ends inside of quotes */
function recordAt(text: string, start: number): CsvRecord | undefined {
  const end = endOfLine(text, start)
  const line = text.slice(start, end)
  if (!line.includes('"')) {
    const fields = withoutLineEnd(line).split(',')
    return { fields: fields.map(field => (field === '' ? undefined : field)), end }
  }

  const broken = (reason: string): CsvRecord => ({ fields: reason, end })
  const fields: Field[] = []
  for (let at = start; ; at++) {
    if (text[at] === '"') {
      const close = closingQuote(text, at)
      if (close === -1) return undefined
      fields.push(text.slice(at + 1, close).replaceAll('""', '"'))
      at = close + 1
    } else {
      const field = unquotedAt(text, at)
      if (field.includes('"')) return broken('there is a quote in a field that does not begin with one')
      fields.push(field === '' ? undefined : field)
      at += field.length
    }
    const lineEnd = lineEndAt(text, at)
    if (lineEnd !== undefined) return { fields, end: lineEnd }
    if (text[at] !== ',') return broken('there is something between a closing quote and the next comma')
  }
}

function closingQuote(text: string, opening: number): number {
  for (let at = opening + 1; ; at += 2) {
    at = text.indexOf('"', at)
    if (at === -1 || text[at + 1] !== '"') return at
  }
}

function unquotedAt(text: string, start: number): string {
  let end = start
  while (text[end] !== ',' && lineEndAt(text, end) === undefined) end++
  return text.slice(start, end)
}

/** Where the next line begins, when this one ends here. */
function lineEndAt(text: string, at: number): number | undefined {
  if (at >= text.length) return text.length
  if (text[at] === '\n') return at + 1
  return text[at] === '\r' && (text[at + 1] === '\n' || at + 1 === text.length)
    ? Math.min(at + 2, text.length)
    : undefined
}

function endOfLine(text: string, at: number): number {
  const found = text.indexOf('\n', at)
  return found === -1 ? text.length : found + 1
}

function withoutLineEnd(line: string): string {
  return line.replace(/\r?\n$|\r$/, '')
}

function countLines(text: string, start: number, end: number): number {
  let lines = 0
  for (let at = text.indexOf('\n', start); at !== -1 && at < end; at = text.indexOf('\n', at + 1)) lines++
  return lines
}

function byteLength({ text, isBytes }: Text, length: number): number {
  return isBytes || length === 0 ? length : Buffer.byteLength(text.slice(0, length))
}

export const csvHeader = `${allColumns.join(',')}\n`

/** @returns lines that {@link readCsv} makes the same plants of */
export function writeCsv(plants: readonly Plant[]): string {
  let text = ''
  for (const { id, name, tag } of plants) {
    text += `${id},${quoted(name)},${tag === undefined ? '' : quoted(tag)}\n`
  }
  return text
}

function quoted(text: string): string {
  return text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

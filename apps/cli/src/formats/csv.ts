import { type Plant, parsePlant } from '@plant-store/domain'
import { counted } from '../terminal/output.ts'
import {
  decode,
  type Encoding,
  type Entry,
  endOfLine,
  type Format,
  isTooLong,
  judge,
  type LineRules,
  withoutLineEnd,
} from './lines.ts'

/** The members of a plant. A forgotten one does not compile. */
const presence = { id: 'required', name: 'required', tag: 'optional' } as const satisfies {
  readonly [Member in keyof Required<Plant>]: 'required' | 'optional'
}
type Columns = readonly (keyof Plant)[]
const allColumns = Object.keys(presence) as Columns
const columnsThatAre = (wanted: 'required' | 'optional') =>
  allColumns.filter(column => presence[column] === wanted)
const requiredColumns = columnsThatAre('required')
const integerColumns = new Set<keyof Plant>(['id'])

export const columnsInWords = `the columns ${requiredColumns.join(' and ')}, and perhaps ${columnsThatAre('optional').join(' and ')}`

/**
 * CSV of RFC 4180 with a header. An optional member is absent if its field is empty, and an empty text if its field is
 * `""`. Broken quotes spoil only the line in which they begin.
 */
export const csv: Format = {
  header: `${allColumns.join(',')}\n`,
  write(plants) {
    let text = ''
    for (const { id, name, tag } of plants) {
      text += `${id},${quoted(name)},${tag === undefined ? '' : quoted(tag)}\n`
    }
    return text
  },
  read: readCsv,
}

function quoted(text: string): string {
  return text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

const quote = 0x22

async function* readCsv(pieces: AsyncIterable<Buffer>, lineBytesMax: number): AsyncGenerator<Entry<Plant>[]> {
  let columns: Columns | undefined
  let line = 1
  /** The start of a record whose last quote is still open. */
  let open: Buffer[] = []

  const read = (bytes: Buffer, isLast: boolean): Entry<Plant>[] => {
    const { text, encoding } = decode(bytes)
    const rules = { encoding, lineBytesMax }
    const entries: Entry<Plant>[] = []
    let at = 0
    while (at < text.length) {
      const record = recordAt(text, at, rules)
      if (record === undefined && !isLast && !(at === 0 && bytes.length > lineBytesMax)) break
      const end = record?.end ?? endOfLine(text, at)
      const raw = withoutLineEnd(text.slice(at, end))
      const fields = record?.fields ?? unfinished(text.slice(at), rules)
      if (columns === undefined) {
        if (isTooLong(raw, rules)) throw new Error('the first line is too long to be a header')
        columns = readHeader(fields)
      } else if (raw !== '') {
        const known = columns
        entries.push(judge(line, raw, rules, () => parsePlant(toMembers(fields, known, encoding))))
      }
      line += raw.split('\n').length
      at = end
    }
    open = [Buffer.from(text.slice(at), encoding)]
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
type Field = string | undefined
/** The fields of a record, or its fault. */
type Fields = readonly Field[] | string

/** @throws Error, as every other line depends on the header */
function readHeader(fields: Fields): Columns {
  if (typeof fields === 'string') throw new Error(`the first line is not a CSV header: ${fields}`)
  const wanted = `it must name ${columnsInWords}`
  for (const [index, name] of fields.entries()) {
    if (!allColumns.includes(name as keyof Plant)) {
      throw new Error(`the first line names an unknown column ${JSON.stringify(name ?? '')}: ${wanted}`)
    }
    if (fields.indexOf(name) !== index) throw new Error(`the first line names the column ${name} twice`)
  }
  for (const name of requiredColumns) {
    if (!fields.includes(name)) throw new Error(`the first line does not name the column ${name}: ${wanted}`)
  }
  return fields as Columns
}

function toMembers(fields: Fields, columns: Columns, encoding: Encoding): object {
  if (typeof fields === 'string') throw new Error(fields)
  if (fields.length !== columns.length) {
    const found = `there ${fields.length === 1 ? 'is' : 'are'} ${counted(fields.length, 'field')}`
    throw new Error(`${found}, and ${columns.length} columns`)
  }
  const members: { -readonly [Column in keyof Plant]?: unknown } = {}
  for (const [index, column] of columns.entries()) {
    const raw = fields[index]
    const field = raw && encoding === 'latin1' ? Buffer.from(raw, encoding).toString() : raw
    const text = field ?? (presence[column] === 'optional' ? undefined : '')
    members[column] = text !== undefined && integerColumns.has(column) ? toInteger(text) : text
  }
  return members
}

/** Returns text that is not an integer unchanged, for the domain to refuse. */
function toInteger(field: string): bigint | string {
  return /^-?\d{1,40}$/.test(field) ? BigInt(field) : field
}

interface CsvRecord {
  readonly fields: Fields
  readonly end: number
}

const separator = /,|\r?\n|\r?$/g

/** Returns the fault of a record for which {@link recordAt} returns `undefined`. */
function unfinished(rest: string, rules: LineRules): string {
  return isTooLong(rest, rules)
    ? `the record is longer than ${rules.lineBytesMax} bytes, or a quote is never closed`
    : 'a quote is opened that is never closed'
}

/** Returns `undefined` if the text ends inside quotes, or if a record with quotes is too long to be held. */
function recordAt(text: string, start: number, rules: LineRules): CsvRecord | undefined {
  const lineEnd = endOfLine(text, start)
  const line = text.slice(start, lineEnd)
  if (!line.includes('"')) {
    const fields = withoutLineEnd(line).split(',')
    return { fields: fields.map(field => (field === '' ? undefined : field)), end: lineEnd }
  }

  const broken = (reason: string): CsvRecord => ({ fields: reason, end: lineEnd })
  const fields: Field[] = []
  for (let at = start; ; at = separator.lastIndex) {
    const isQuoted = text[at] === '"'
    const end = isQuoted ? closingQuote(text, at) : at
    if (end === -1) return undefined
    separator.lastIndex = isQuoted ? end + 1 : at
    const found = separator.exec(text) as RegExpExecArray
    if (isQuoted) {
      if (found.index > end + 1)
        return broken('there is something between a closing quote and the next comma')
      fields.push(text.slice(at + 1, end).replaceAll('""', '"'))
    } else {
      const field = text.slice(at, found.index)
      if (field.includes('"')) return broken('there is a quote in a field that does not begin with one')
      fields.push(field === '' ? undefined : field)
    }
    if (found[0] !== ',') {
      return isTooLong(text.slice(start, found.index), rules)
        ? undefined
        : { fields, end: separator.lastIndex }
    }
  }
}

function closingQuote(text: string, opening: number): number {
  for (let at = opening + 1; ; at += 2) {
    at = text.indexOf('"', at)
    if (at === -1 || text[at + 1] !== '"') return at
  }
}

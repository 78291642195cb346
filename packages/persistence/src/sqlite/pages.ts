import { readSync } from 'node:fs'

// Reads the pages of a table in an SQLite file (https://www.sqlite.org/fileformat2.html, section 1). SQLite
// stops at the first damaged page. This reader judges each page alone and trusts none.

/** Each function returns `undefined` for content that SQLite cannot have written, or that the disk does not return. */
export interface Pages {
  /** Pages are numbered from 1. */
  readonly count: number
  /** Reads a page of a table. Checks that its ids ascend and that every byte of it is accounted for. */
  tablePage(page: number): TablePage | undefined
  /** Returns the overflow pages of a row, in order. */
  overflowPages(row: StoredRow): readonly number[] | undefined
  /** Returns the columns of a row of texts and integers. The id, which is stored elsewhere, is `null`. */
  columns(row: StoredRow, overflow: readonly number[]): readonly Value[] | undefined
  /** Returns the unused pages, which may still hold deleted rows. */
  freePages(): ReadonlySet<number> | undefined
}

export type Value = string | bigint | null

export type TablePage =
  | { readonly kind: 'interior'; readonly children: readonly Child[]; readonly last: number }
  | { readonly kind: 'leaf'; readonly rows: readonly StoredRow[] }

/** A page with the rows up to an id, from the previous child on. */
interface Child {
  readonly page: number
  readonly upTo: bigint
}

export interface StoredRow {
  readonly id: bigint
  /** The size of the whole record. */
  readonly bytes: number
  /** The start of the record. */
  readonly local: Buffer
  /** The first overflow page, or 0. */
  readonly overflow: number
}

/** @param descriptor of a file whose first page is sound */
export function openPages(descriptor: number, fileBytes: number): Pages {
  const header = Buffer.alloc(headerBytes)
  readSync(descriptor, header, 0, headerBytes, 0)
  const written = header.readUInt16BE(16)
  const pageBytes = written === 1 ? 65_536 : written
  const usableBytes = pageBytes - header.readUInt8(20)
  const count = Math.floor(fileBytes / pageBytes)
  // There is no page 0, and the text at the start of page 1 is neither a table's page nor a page number.
  const read = (page: number): Buffer => {
    const bytes = Buffer.alloc(pageBytes)
    must(readSync(descriptor, bytes, 0, pageBytes, (page - 1) * pageBytes) === pageBytes)
    return bytes
  }

  return {
    count,
    tablePage: page => unlessDamaged(() => parseTablePage(read(page), usableBytes)),
    overflowPages: ({ bytes, local, overflow }) =>
      unlessDamaged(() => {
        const pages: number[] = []
        let next = overflow
        for (let left = bytes - local.length; left > 0; left -= usableBytes - 4) {
          must(pages.length < count)
          pages.push(next)
          next = read(next).readUInt32BE(0)
        }
        must(next === 0)
        return pages
      }),
    columns: ({ bytes, local }, overflow) =>
      unlessDamaged(() => {
        const rest = overflow.map(page => read(page).subarray(4, usableBytes))
        return parseColumns(Buffer.concat([local, ...rest]).subarray(0, bytes))
      }),
    freePages: () =>
      unlessDamaged(() => {
        const free = new Set<number>()
        for (let trunk = header.readUInt32BE(32); trunk !== 0; ) {
          const bytes = read(trunk)
          const leaves = bytes.readUInt32BE(4)
          must(!free.has(trunk))
          free.add(trunk)
          for (let n = 0; n < leaves; n++) free.add(bytes.readUInt32BE(8 + 4 * n))
          trunk = bytes.readUInt32BE(0)
        }
        must(free.size === header.readUInt32BE(36))
        return free
      }),
  }
}

const headerBytes = 100

function must(holds: boolean): asserts holds {
  if (!holds) throw new Error('damaged')
}

function unlessDamaged<Result>(read: () => Result): Result | undefined {
  try {
    return read()
  } catch {
    // It fails a check, or the disk fails, or a place is out of range, or a text is not UTF-8.
    return undefined
  }
}

const interiorType = 0x05
const leafType = 0x0d

function parseTablePage(bytes: Buffer, usableBytes: number): TablePage {
  const type = bytes.readUInt8(0)
  const pointersAt = type === leafType ? 8 : 12
  const pointers = Array.from({ length: bytes.readUInt16BE(3) }, (_, n) =>
    bytes.readUInt16BE(pointersAt + 2 * n),
  )
  const pointersEnd = pointersAt + 2 * pointers.length
  if (type === leafType) {
    const cells = pointers.map(at => readRow(bytes, at, usableBytes))
    checkSpace(bytes, pointersEnd, cells, usableBytes)
    const rows = cells.map(({ row }) => row)
    checkAscending(rows.map(({ id }) => id))
    return { kind: 'leaf', rows }
  }
  must(type === interiorType)
  const cells = pointers.map(at => {
    const { value, end } = readVarint(bytes, at + 4)
    return { at, end, child: { page: bytes.readUInt32BE(at), upTo: value } }
  })
  checkSpace(bytes, pointersEnd, cells, usableBytes)
  const children = cells.map(({ child }) => child)
  checkAscending(children.map(({ upTo }) => upTo))
  return { kind: 'interior', children, last: bytes.readUInt32BE(8) }
}

interface Space {
  readonly at: number
  readonly end: number
}

/**
 * Checks that a page holds, after the pointers and a gap, only cells, free blocks and as many stray bytes as its header
 * says.
 */
function checkSpace(bytes: Buffer, pointersEnd: number, cells: readonly Space[], usableBytes: number): void {
  const spaces = [...cells]
  for (let at = bytes.readUInt16BE(1); at !== 0; at = bytes.readUInt16BE(at)) {
    must(spaces.length < usableBytes)
    spaces.push({ at, end: at + bytes.readUInt16BE(at + 2) })
  }
  let end = bytes.readUInt16BE(5) || 65_536
  let stray = bytes.readUInt8(7)
  must(end >= pointersEnd)
  for (const space of spaces.sort((a, b) => a.at - b.at)) {
    must(space.at >= end)
    stray -= space.at - end
    end = space.end
  }
  must(stray === usableBytes - end)
}

function checkAscending(ids: readonly bigint[]): void {
  must(ids.every((id, n) => n === 0 || id > (ids[n - 1] as bigint)))
}

function readRow(bytes: Buffer, at: number, usableBytes: number): Space & { readonly row: StoredRow } {
  const size = readVarint(bytes, at)
  const { value: id, end: begin } = readVarint(bytes, size.end)
  const total = Number(size.value)
  const localMax = usableBytes - 35
  const localMin = Math.floor(((usableBytes - 12) * 32) / 255) - 23
  // All of it if it fits, otherwise what fills the last overflow page.
  const wanted = localMin + ((total - localMin) % (usableBytes - 4))
  const local = wanted <= localMax ? wanted : localMin
  const end = begin + local
  must(total > 0 && end <= usableBytes)
  const isWhole = local === total
  const overflow = isWhole ? 0 : bytes.readUInt32BE(end)
  const row = { id, bytes: total, local: bytes.subarray(begin, end), overflow }
  return { row, at, end: isWhole ? end : end + 4 }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function parseColumns(record: Buffer): Value[] {
  const header = readVarint(record, 0)
  const contentAt = Number(header.value)
  const columns: Value[] = []
  let at = contentAt
  let next = header.end
  while (next < contentAt) {
    const { value: type, end } = readVarint(record, next)
    next = end
    const valueEnd = at + bytesOf(type)
    columns.push(parseValue(type, record.subarray(at, valueEnd)))
    at = valueEnd
  }
  must(next === contentAt && at === record.length)
  return columns
}

/** The size of a value by its type: null, integers, and 0 and 1 without a byte. */
const integerBytes = [0, 1, 2, 3, 4, 6, 8, undefined, 0, 0]
const isText = (type: bigint) => type >= 13n && type % 2n === 1n

function bytesOf(type: bigint): number {
  const bytes = isText(type) ? Number((type - 13n) / 2n) : integerBytes[Number(type)]
  must(bytes !== undefined)
  return bytes
}

function parseValue(type: bigint, bytes: Buffer): Value {
  if (isText(type)) return utf8.decode(bytes)
  if (type === 0n) return null
  return bytes.length === 0
    ? type - 8n
    : BigInt.asIntN(8 * bytes.length, BigInt(`0x${bytes.toString('hex')}`))
}

/** Reads a number of up to nine bytes, with seven bits in each but the ninth. */
function readVarint(bytes: Buffer, at: number): { readonly value: bigint; readonly end: number } {
  let value = 0n
  for (let n = 0; n < 8; n++) {
    const byte = bytes.readUInt8(at + n)
    value = (value << 7n) | BigInt(byte & 0x7f)
    if (byte < 0x80) return { value, end: at + n + 1 }
  }
  return { value: BigInt.asIntN(64, (value << 8n) | BigInt(bytes.readUInt8(at + 8))), end: at + 9 }
}

import { closeSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openPages, type Pages, type StoredRow, type TablePage, type Value } from '../src/sqlite/pages.ts'
import { temporaryFolder } from './store-folder.ts'

const pageBytes = 512
/** Texts of every length that matters to where they are kept, and integers of every length. */
const stored: readonly (readonly [id: bigint, name: string, version: bigint])[] = [
  ...[-(2n ** 63n), -(2n ** 56n), -1n].map(id => [id, 'negative', id] as const),
  ...Array.from({ length: 1_300 }, (_, n) => [BigInt(n), 'n'.repeat(n), BigInt(n)] as const),
  [2_000n, '\ufeffa text that takes a hundred pages 🌱'.repeat(1_200), 0n],
  ...[14n, 21n, 28n, 35n, 42n, 49n, 56n].flatMap(bits => [
    [2n ** bits - 1n, 'all bits', -(2n ** bits)] as const,
    [2n ** bits, 'one bit', 2n ** bits - 1n] as const,
  ]),
  [2n ** 63n - 1n, 'greatest', 2n ** 63n - 1n],
]
const removed = [3n, 5n, 7n]

const folder = temporaryFolder(afterAll)
const descriptor = openSync(join(folder, 'pages.db'), 'w+')
afterAll(() => closeSync(descriptor))
let sound: Buffer
let free: ReadonlySet<number>
let pages: Pages
/** The pages of the table, by number, without those that long texts go on in. */
let table: ReadonlyMap<number, TablePage>

beforeAll(() => {
  const database = new Database(':memory:')
  database.exec(`
    pragma page_size = ${pageBytes};
    create table plants (id integer primary key, name text, version integer);
  `)
  const insert = database.prepare('insert into plants values (?, ?, ?)')
  database.transaction(() => {
    for (const row of stored) insert.run(...row)
    // Leaves free bytes within pages, and whole pages that are free.
    database.exec(`
      delete from plants where id in (${removed});
      create table dropped (content blob);
      insert into dropped values (zeroblob(${300 * pageBytes}));
      drop table dropped;
    `)
  })()
  const root = database.prepare("select rootpage from sqlite_schema where name = 'plants'").pluck().get()
  const used = new Set(database.prepare('select pageno from dbstat').pluck().all())
  sound = database.serialize()
  database.close()
  writeSync(descriptor, sound)
  pages = openPages(descriptor, sound.length)
  const numbers = Array.from({ length: sound.length / pageBytes }, (_, n) => n + 1)
  free = new Set(numbers.filter(number => !used.has(number)))
  table = new Map(tableFrom(root as number))
})

function* tableFrom(number: number): Iterable<[number, TablePage]> {
  const page = pages.tablePage(number) as TablePage
  yield [number, page]
  if (page.kind === 'leaf') return
  for (const child of page.children) yield* tableFrom(child.page)
  yield* tableFrom(page.last)
}

const contentOf = (page: number) => sound.subarray((page - 1) * pageBytes, page * pageBytes)

/** Returns a page of a kind whose content is as asked. */
function find(kind: TablePage['kind'], isWanted: (content: Buffer) => boolean): number {
  const [number] = [...table].find(([n, page]) => page.kind === kind && isWanted(contentOf(n))) ?? []
  return number as number
}

type Bytes = readonly [at: number, ...bytes: number[]]

/** Returns what is found while some bytes of a page are others. */
function withBytes<Result>(page: number, changes: readonly Bytes[], judge: () => Result): Result {
  const content = Buffer.from(contentOf(page))
  for (const [at, ...bytes] of changes) content.set(bytes, at)
  const position = (page - 1) * pageBytes
  writeSync(descriptor, content, 0, pageBytes, position)
  const result = judge()
  writeSync(descriptor, contentOf(page), 0, pageBytes, position)
  return result
}

const rows = () => [...table.values()].flatMap(page => (page.kind === 'leaf' ? page.rows : []))
const longest = () => rows().find(({ id }) => id === 2_000n) as StoredRow

test('a table is read as SQLite wrote it, however much of a row fits into its page', () => {
  expect(pages.count).toBe(sound.length / pageBytes)
  const read = rows().map(row => {
    const overflow = pages.overflowPages(row) as readonly number[]
    return [row.id, ...(pages.columns(row, overflow) as readonly Value[])]
  })
  const kept = stored.filter(([id]) => !removed.includes(id))
  expect(read).toEqual(kept.map(([id, name, version]) => [id, null, name, version]))
})

describe('a page is refused', () => {
  test.each(['leaf', 'interior'] as const)('if any byte of its header or pointers is another: %s', kind => {
    const page = find(kind, content => kind === 'interior' || content.readUInt16BE(1) > 0)
    const content = contentOf(page)
    const header = kind === 'leaf' ? 8 : 12
    const missed: Bytes[] = []
    for (let at = 0; at < header + 2 * content.readUInt16BE(3); at++) {
      // The last child may be any page.
      if (kind === 'interior' && at >= 8 && at < header) continue
      const byte = content.readUInt8(at)
      for (const other of [byte ^ 0x01, byte ^ 0x08, byte ^ 0x80, byte ^ 0xff]) {
        if (withBytes(page, [[at, other]], () => pages.tablePage(page))) missed.push([at, other])
      }
    }
    expect(missed).toEqual([])
  })

  test.each(['leaf', 'interior'] as const)('if its ids do not ascend: %s', kind => {
    const page = find(kind, content => content.readUInt16BE(3) >= 2)
    const pointersAt = kind === 'leaf' ? 8 : 12
    const [a, b, c, d] = contentOf(page).subarray(pointersAt) as unknown as [number, number, number, number]
    const swapped: Bytes = [pointersAt, c, d, a, b]
    expect(withBytes(page, [swapped], () => pages.tablePage(page))).toBeUndefined()
    // The id of the second becomes that of the first.
    const [first, second] = [a * 256 + b, c * 256 + d]
    const idAt = kind === 'leaf' ? 1 : 4
    const id = contentOf(page).subarray(first + idAt, first + idAt + 2)
    expect(withBytes(page, [[second + idAt, ...id]], () => pages.tablePage(page))).toBeUndefined()
  })

  test('if its free blocks are a circle', () => {
    const page = find('leaf', content => content.readUInt16BE(1) > 0)
    const block = contentOf(page).readUInt16BE(1)
    const next: Bytes = [block, block >> 8, block & 0xff]
    expect(withBytes(page, [next], () => pages.tablePage(page))).toBeUndefined()
  })

  test.each<[string, number, ...Bytes[]]>([
    ['ends after the page', 492, [500, 18, 1]],
    ['has no bytes', 500, [7, 10], [500, 0, 1]],
    ['has less than no bytes', 500, [7, 3], [500, ...Array(9).fill(0xff), 1]],
  ])('if a row %s, and all else would fit', (_, contentFrom, ...row) => {
    const page = find('leaf', () => true)
    const header: Bytes = [0, 0x0d, 0, 0, 0, 1, contentFrom >> 8, contentFrom & 0xff, 0, 500 >> 8, 500 & 0xff]
    const sound: Bytes = [500, 10, 1]
    const isFound = (...changes: Bytes[]) =>
      withBytes(page, changes, () => pages.tablePage(page)) !== undefined
    expect(isFound(header, [5, 500 >> 8, 500 & 0xff], sound)).toBe(true)
    expect(isFound(header, ...row)).toBe(false)
  })

  test('if two rows overlap, and not if bytes between them are counted as unused', () => {
    const page = find('leaf', () => true)
    const found = (first: Bytes, second: Bytes, unused: number) => {
      const pointers = [first[0] >> 8, first[0] & 0xff, second[0] >> 8, second[0] & 0xff]
      const header: Bytes = [0, 0x0d, 0, 0, 0, 2, first[0] >> 8, first[0] & 0xff, unused, ...pointers]
      return withBytes(page, [header, first, second], () => pages.tablePage(page))
    }
    expect(found([480, 14, 1], [498, 12, 2], 2)).toMatchObject({ rows: [{ id: 1n }, { id: 2n }] })
    expect(found([480, 14, 1], [490, 14, 2], 0)).toBeUndefined()
  })

  test('if a row lies within the pointers, and all else would fit', () => {
    const page = find('leaf', () => true)
    const header: Bytes = [0, 0x0d, 0, 22, 0, 2, 0, 11, 0]
    // Its size is the last byte of the second pointer.
    const pointersAndRow: Bytes = [8, 0, 11, 265 >> 8, 265 & 0xff, 1]
    const freeBlock: Bytes = [22, 0, 0, 0, 265 - 22]
    const secondRow: Bytes = [265, 0x81, 244 - 128, 2]
    const found = withBytes(page, [header, pointersAndRow, freeBlock, secondRow], () => pages.tablePage(page))
    expect(found).toBeUndefined()
  })

  test('if the disk does not return it, or there is no such page', () => {
    expect([0, 1, pages.count + 1, 2 ** 32 - 1].map(page => pages.tablePage(page))).toEqual(
      Array(4).fill(undefined),
    )
    const closed = openSync(join(folder, 'pages.db'), 'r')
    const unreadable = openPages(closed, sound.length)
    closeSync(closed)
    expect(unreadable.tablePage(find('leaf', () => true))).toBeUndefined()
  })
})

describe('the pages that a text goes on in', () => {
  const big = (n: number) => [n >>> 24, (n >>> 16) & 0xff, (n >>> 8) & 0xff, n & 0xff]
  const chain = () => pages.overflowPages(longest()) as readonly number[]

  test.each<[string, (first: number, second: number) => number[]]>([
    ['end too early', () => big(0)],
    ['are a circle', first => big(first)],
    ['lead out of the file', () => big(2 ** 31)],
    ['leave one out', (_, second) => [...contentOf(second).subarray(0, 4)]],
  ])('are not known if they %s', (_, next) => {
    const row = longest()
    const [first, second] = chain() as [number, number]
    expect(withBytes(first, [[0, ...next(first, second)]], () => pages.overflowPages(row))).toBeUndefined()
  })

  test('are not known if they do not end with the text', () => {
    const last = chain().at(-1) as number
    expect(withBytes(last, [[0, ...big(2)]], () => pages.overflowPages(longest()))).toBeUndefined()
  })

  test('are not looked for forever, however long the text claims to be', () => {
    const first = chain()[0] as number
    const endless = { ...longest(), bytes: 2 ** 60 }
    expect(withBytes(first, [[0, ...big(first)]], () => pages.overflowPages(endless))).toBeUndefined()
  })
})

describe('the columns of a row', () => {
  const columnsOf = (...record: number[]) =>
    pages.columns({ id: 1n, bytes: record.length, local: Buffer.from(record), overflow: 0 }, [])

  test.each<[readonly Value[], ...number[]]>([
    [[], 1],
    [[null, 0n, 1n], 4, 0, 8, 9],
    [[''], 2, 13],
    [['\ufeff'], 2, 19, 0xef, 0xbb, 0xbf],
    [[-1n], 2, 1, 0xff],
    [[-(2n ** 23n)], 2, 3, 0x80, 0, 0],
    [[2n ** 40n], 2, 5, 1, 0, 0, 0, 0, 0],
  ])('are %s', (values, ...record) => {
    expect(columnsOf(...record)).toEqual(values)
  })

  test.each<[string, ...number[]]>([
    ['a number that is not an integer', 2, 7, 0, 0, 0, 0, 0, 0, 0, 0],
    ['a reserved type', 2, 10],
    ['bytes', 2, 16, 65],
    ['a negative type', 10, ...Array(9).fill(0xff)],
    ['a text that is not UTF-8', 2, 15, 0xff],
    ['less than a value', 2, 15],
    ['more than all values', 2, 15, 65, 65],
    ['less than a header', 9, 0],
    ['no header', 0],
    ['a type that ends after the header', 2, 0x81, 0x0d, ...Array(63).fill(65)],
  ])('are not known of %s', (_, ...record) => {
    expect(columnsOf(...record)).toBeUndefined()
  })
})

describe('the free pages', () => {
  const trunk = () => sound.readUInt32BE(32)

  test('are all that no table uses', () => {
    expect(free.size).toBeGreaterThan(pageBytes / 2)
    expect(pages.freePages()).toEqual(free)
  })

  test('are not known if their list is a circle, holds more than it can, or not as many as the header says', () => {
    const [a, b, c, d] = sound.subarray(32, 36) as unknown as [number, number, number, number]
    expect(withBytes(trunk(), [[0, a, b, c, d]], () => pages.freePages())).toBeUndefined()
    expect(withBytes(trunk(), [[4, 0xff]], () => pages.freePages())).toBeUndefined()
    const count = sound.readUInt8(39)
    const freePages = () => openPages(descriptor, sound.length).freePages()
    expect(withBytes(1, [[39, count ^ 1]], freePages)).toBeUndefined()
  })
})

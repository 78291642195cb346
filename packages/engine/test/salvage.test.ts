import assert from 'node:assert/strict'
import { createHash, randomFillSync } from 'node:crypto'
import { readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Entity, storesOf } from '@plant-store/engine'
import { temporaryFolder as disposableFolder } from '@plant-store/harness'
import { anySeed, createRandom } from '@plant-store/harness/random'
import { temporaryFolder } from '@plant-store/harness/vitest'
import Database from 'better-sqlite3'
import { beforeAll, describe, expect, test } from 'vitest'
import {
  createTable,
  entityOf,
  int64Min,
  type Note,
  type Notes,
  note,
  notesFrom,
} from './notes.ts'
import { changeBySql, itemsOf, newFile, openFilesIn } from './places.ts'

/** A page that was cut off reads as zeros, and so as rows without a text. */
function parseNote(row: Note): Note {
  assert.equal(typeof row.text, 'string')
  return row
}

/** Notes with an index, by which a salvage counts them. */
const indexedNotes: Entity<Notes, Note> = {
  ...entityOf('notes'),
  rows: {
    columns: { id: 'bigint', text: 'text', topic: 'text' },
    from: (row: Note) => row,
    parse: parseNote,
  },
  migrations: {
    async 1(db, dialect) {
      await createTable('notes')(db, dialect)
      await db.schema
        .createIndex('notes_by_topic')
        .on('notes')
        .columns(['topic', 'id'])
        .execute()
    },
  },
}
const { openSalvage, openStorage } = storesOf({ notes: indexedNotes })

/** Small, so that few notes need two levels of pages. */
const pageBytes = 1024
const seed = anySeed()
const { below, chance, pick } = createRandom(seed)

const kinds = [
  'first',
  'root',
  'interior',
  'leaf',
  'overflow',
  'index',
  'other',
  'free',
] as const
type Kind = (typeof kinds)[number]

interface Page {
  readonly number: number
  readonly kind: Kind
}

let sound: Buffer
let notes: readonly Note[]
let pages: readonly Page[]

beforeAll(async () => {
  using folder = disposableFolder()
  const file = join(folder.path, 'notes.db')
  const anyNotes = Array.from({ length: 1_000 }, (_, n) => anyNote(n))
  const byId = anyNotes.toSorted((a, b) => (a.id < b.id ? -1 : 1))
  const byText = anyNotes.toSorted((a, b) => (a.text < b.text ? -1 : 1))
  createEmpty(file)
  {
    await using storage = await openStorage({ url: `file:${file}` })
    await storage.notes.insertAll(byText)
    // Neighbours are removed, so that whole pages become free. Their rows are still on
    // these pages, and must not come back.
    const removed = byId.slice(200, 300)
    await Promise.all(removed.map(({ id }) => storage.notes.remove(id)))
    notes = byId.filter(kept => !removed.includes(kept))
  }
  const database = new Database(file)
  for (let number = 0; number < 3; number++) {
    // The list of tables needs several pages.
    database.exec(`create table filler_${number} (a text /* ${'x'.repeat(700)} */)`)
  }
  pages = describePages(database)
  database.close()
  sound = readFileSync(file)
})

function createEmpty(file: string) {
  changeBySql(file, `pragma page_size = ${pageBytes}; pragma user_version = 1`)
}

/**
 * Returns a note. The first two have the least and the greatest id, some have ids without
 * a gap, and others any. Most notes fit into a page, some need another one, and few
 * several.
 */
function anyNote(n: number): Note {
  const isLong = chance(0.03)
  const length = isLong ? 800 + below(2_500) : 50 + below(50)
  const text = `${below(2 ** 32)} ${'ab '.repeat(length / 3)}${n} 🌱`
  return note(idOf(n), text, chance(0.5) ? `topic ${text}` : null)
}

function idOf(n: number): bigint {
  if (n < 2) {
    return n === 0 ? int64Min : -1n - int64Min
  }
  if (n < 60) {
    return BigInt(n)
  }
  const high = BigInt(below(2 ** 32))
  const low = BigInt(below(2 ** 32))
  return BigInt.asIntN(64, (high << 32n) + low)
}

/** A row of SQLite's table of all pages in use. */
interface PageRow {
  readonly pageno: number
  readonly name: string
  readonly path: string
  readonly pagetype: 'internal' | 'leaf' | 'overflow'
}

function describePages(database: Database.Database): Page[] {
  const rows = database
    .prepare<[], PageRow>('select pageno, name, path, pagetype from dbstat')
    .all()
  const kinds = new Map(rows.map(row => [row.pageno, kindOf(row)]))
  const total = Number(database.pragma('page_count', { simple: true }))
  return Array.from({ length: total }, (_, n) => {
    const number = n + 1
    return { number, kind: kinds.get(number) ?? 'free' }
  })
}

function kindOf({ name, path, pagetype }: PageRow): Kind {
  if (name === 'sqlite_schema') {
    return 'first'
  }
  if (name !== 'notes') {
    return name === 'notes_by_topic' ? 'index' : 'other'
  }
  if (pagetype !== 'internal') {
    return pagetype
  }
  return path === '/' ? 'root' : 'interior'
}

const ofKind = (kind: Kind) => pages.filter(page => page.kind === kind)
const indexLeaves = () =>
  ofKind('index').filter(({ number }) => contentOf(number)[0] === 0x0a)
const contentOf = (page: number) =>
  sound.subarray((page - 1) * pageBytes, page * pageBytes)

const ways = {
  zeros: () => Buffer.alloc(pageBytes),
  ones: () => Buffer.alloc(pageBytes, 0xff),
  'any bytes': () => randomFillSync(Buffer.alloc(pageBytes)),
  'a page of another kind': ({ kind }: Page) =>
    contentOf(
      pick(ofKind(kind === 'index' || kind === 'overflow' ? 'leaf' : 'index')).number,
    ),
  'another page of its kind': ({ number, kind }: Page) =>
    contentOf(pick(ofKind(kind).filter(each => each.number !== number)).number),
} as const satisfies Record<string, (page: Page) => Buffer>
type Way = keyof typeof ways

function damagedFile(damages: readonly (readonly [Page, Way | Buffer])[]): string {
  const bytes = Buffer.from(sound)
  for (const [page, way] of damages) {
    const content = typeof way === 'string' ? ways[way](page) : way
    content.copy(bytes, (page.number - 1) * pageBytes)
  }
  const file = newFile()
  writeFileSync(file, bytes)
  return file
}

/** Comparing thousands of notes member by member takes a second. */
function digest(all: readonly Note[]): string {
  const hash = createHash('sha256')
  for (const { id, text, topic } of all) {
    hash.update(`${JSON.stringify([`${id}`, text, topic])}\n`)
  }
  return `${all.length} notes ${hash.digest('hex')}`
}

/** Returns a sound file that SQL has changed. */
function changedFile(statements: string): string {
  const file = damagedFile([])
  changeBySql(file, statements)
  return file
}

async function salvaged(file: string) {
  await using salvage = await openSalvage(`file:${file}`)
  const ofNotes = salvage.of('notes')
  const read = await itemsOf(ofNotes.all())
  return { read, count: ofNotes.count, unread: ofNotes.unread() }
}

const allWays = Object.keys(ways) as readonly Way[]

const damages = kinds
  .filter(kind => kind !== 'first')
  .flatMap(kind => allWays.map(way => ({ kind, way })))
  // There is one root.
  .filter(({ kind, way }) => kind !== 'root' || way !== 'another page of its kind')

describe(`rows that SQLite finds by id are read (seed ${seed}) from a file with`, () => {
  test.each(damages)('$way in the place of a page of the kind $kind', async damage => {
    const { kind, way } = damage
    const page = pick(ofKind(kind))

    const { count } = await expectAllOfPointReads(damagedFile([[page, way]]))

    expect(kind === 'index' || count === notes.length, `page ${page.number}`).toBe(true)
  })

  test('many damaged pages', async () => {
    for (let time = 0; time < 3; time++) {
      const pagesAndWays = Array.from({ length: 1 + below(40) }, () => {
        const kind = pick(kindsOfDamage)
        return [pick(ofKind(kind)), pick(allWays)] as const
      })
      await expectAllOfPointReads(damagedFile(pagesAndWays))
    }
  })

  test('no end', async () => {
    for (let time = 0; time < 4; time++) {
      const file = damagedFile([])
      const lostPages = below(Math.floor(pages.length / 2))
      const bytes = (pages.length - lostPages) * pageBytes - below(pageBytes)
      truncateSync(file, bytes)
      await expectAllOfPointReads(file)
    }
  })
})

/** Leaves are thrice as likely as others. */
const kindsOfDamage: readonly Kind[] = [
  'interior',
  'leaf',
  'leaf',
  'leaf',
  'overflow',
  'index',
  'other',
]

async function expectAllOfPointReads(file: string) {
  const { read, count, unread } = await salvaged(file)

  expect(digest(read)).toBe(digest(readOneByOne(file)))
  if (count === undefined) {
    return { read, count, unread }
  }
  // An index that counts fewer rows than were read is damaged, too.
  const isIndexDamaged = count < read.length
  expect(unread).toBe(isIndexDamaged ? undefined : count - read.length)
  expect(isIndexDamaged || count === notes.length, `it counts ${count}`).toBe(true)
  return { read, count, unread }
}

/** Returns the notes that SQLite finds by their ids. */
function readOneByOne(file: string): Note[] {
  const database = new Database(file)
  database.unsafeMode().pragma('writable_schema = on')
  const find = database
    .prepare<[bigint], Note>('select id, text, topic from notes where id = ?')
    .safeIntegers()
  const found = notes.flatMap(({ id }) => {
    try {
      const row = find.get(id)
      // better-sqlite3 replaces bytes that are no text with this character.
      const isText = !`${row?.text}${row?.topic}`.includes('\ufffd')
      return row !== undefined && isText ? [parseNote(row)] : []
    } catch {
      return []
    }
  })
  database.close()
  return found
}

test('a store is read whose list of tables is damaged behind its notes', async () => {
  const last = ofKind('first').at(-1)
  assert(last !== undefined && last.number > 1, 'the list has several pages')
  const file = damagedFile([[last, 'zeros']])

  const { read } = await salvaged(file)

  expect(digest(read)).toBe(digest(notes))
})

test('the number of unread notes is unknown if the index is damaged, too', async () => {
  const leaf = pick(ofKind('leaf'))
  const indexLeaf = pick(indexLeaves())
  const file = damagedFile([
    [leaf, 'zeros'],
    [indexLeaf, 'zeros'],
  ])

  const { count, unread } = await expectAllOfPointReads(file)

  expect(count).toBeUndefined()
  expect(unread).toBeUndefined()
})

test('a store that lacks a column of this version is read', async () => {
  const file = changedFile(
    'drop index notes_by_topic; alter table notes drop column topic',
  )

  const { read } = await salvaged(file)

  const withoutTopics = notes.map(({ id, text }) => note(id, text))
  expect(digest(read)).toBe(digest(withoutTopics))
})

test('a store is closed after it was read, or if it cannot be', async () => {
  const file = damagedFile([])
  await salvaged(file)
  const openFiles = openFilesIn(dirname(file))
  expect(openFiles, 'by which the pages are read').toEqual([file])
  await salvaged(file)
  const empty = `${file}.empty`
  createEmpty(empty)
  await expect(openSalvage(`file:${empty}`)).rejects.toThrow(/can be read: it is empty$/)
  expect(openFilesIn(dirname(file))).toEqual(openFiles)
})

test('a store that is in use is read as of one moment', async () => {
  const url = `file:${newFile()}`
  await using storage = await openStorage({ url })
  await storage.notes.insertAll(notesFrom(0, 2_000))
  await using salvage = await openSalvage(url)
  const ofNotes = salvage.of('notes')

  let read = 0
  for await (const page of ofNotes.all()) {
    if (read === 0) {
      await storage.notes.remove(1_999n)
    }
    read += page.length
  }

  expect(read).toBe(2_000)
  expect(ofNotes.unread()).toBe(0)
})

test('a store whose version is lost is read', async () => {
  const { read } = await salvaged(changedFile('delete from schema_version'))
  expect(digest(read)).toBe(digest(notes))
})

test('an index with a page in the place of another does not count the notes', async () => {
  const [first, second] = indexLeaves()
  assert(first !== undefined && second !== undefined, 'the index has several leaves')
  const file = damagedFile([[second, contentOf(first.number)]])

  const { read, count } = await salvaged(file)

  expect(count).toBeUndefined()
  expect(digest(read)).toBe(digest(notes))
})

test('the number of unread notes is unknown if the index has a wrong root', async () => {
  const leaf = pick(indexLeaves())
  const root = ofKind('index').find(page => !indexLeaves().includes(page))
  assert(root !== undefined, 'the index has a root above its leaves')
  const file = damagedFile([[root, contentOf(leaf.number)]])

  const { count, unread } = await expectAllOfPointReads(file)

  expect(count).toBeLessThan(notes.length)
  expect(unread).toBeUndefined()
})

test('a store whose first page is lost is refused in one line', async () => {
  const [first] = ofKind('first')
  assert(first !== undefined, 'there is a first page')
  const file = damagedFile([[first, 'zeros']])

  await expect(openSalvage(`file:${file}`)).rejects.toMatchObject({
    message: expect.stringMatching(/^nothing in the store .* can be read: [^\n]+$/),
    cause: { code: 'SQLITE_NOTADB' },
  })
})

test('a salvage of no file is refused', async () => {
  const none = `file:${join(temporaryFolder(), 'none.db')}`

  await expect(openSalvage(none)).rejects.toThrow(/^there is no store at /)
})

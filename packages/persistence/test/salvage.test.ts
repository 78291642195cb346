import { createHash, randomFillSync } from 'node:crypto'
import { readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { int64Max, int64Min, type Plant, parsePlant } from '@plant-store/domain'
import { fullPlant } from '@plant-store/domain/testing'
import { temporaryFolder as disposableFolder } from '@plant-store/harness'
import { anySeed, createRandom } from '@plant-store/harness/random'
import { openSalvage, openStorage } from '@plant-store/persistence'
import Database from 'better-sqlite3'
import { beforeAll, describe, expect, test } from 'vitest'
import { openFilesIn, plant, plantId, temporaryFolder } from './store-folder.ts'

/** Small, so that few plants need two levels of pages. */
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
let plants: readonly Plant[]
let pages: readonly Page[]

beforeAll(async () => {
  using folder = disposableFolder()
  const file = join(folder.path, 'plants.db')
  const byId = Array.from({ length: 1_000 }, (_, n) => anyPlant(n)).sort((a, b) =>
    a.id < b.id ? -1 : 1,
  )
  {
    createEmpty(file)
    await using storage = await openStorage({
      url: `file:${file}`,
      queueChangesMax: byId.length,
    })
    await Promise.all(
      byId.toSorted((a, b) => (a.name < b.name ? -1 : 1)).map(storage.plants.insert),
    )
    // Neighbours, so that whole pages become free. What was in them is still there, and must not come back.
    const removed = new Set(byId.slice(200, 300))
    await Promise.all([...removed].map(({ id }) => storage.plants.remove(id)))
    plants = byId.filter(each => !removed.has(each))
  }
  const database = new Database(file)
  pages = describePages(database)
  database.close()
  sound = readFileSync(file)
})

function createEmpty(file: string): void {
  const database = new Database(file)
  database.exec(`pragma page_size = ${pageBytes}; pragma user_version = 1`)
  database.close()
}

/** The least and the greatest id, some without a gap, and others. Most fit into a page, the texts of some go on in another one, of few in several. */
function anyPlant(n: number): Plant {
  const anyId = BigInt.asIntN(
    64,
    (BigInt(below(2 ** 32)) << 32n) + BigInt(below(2 ** 32)),
  )
  const id = [int64Min, int64Max][n] ?? (n < 60 ? BigInt(n) : anyId)
  const length = chance(0.03) ? 800 + below(2_500) : 50 + below(50)
  const full = fullPlant(id, `${below(2 ** 32)} ${'ab '.repeat(length / 3)}`)
  return chance(0.5) ? full : parsePlant({ id, name: `${full.name}${n} 🌱` })
}

function describePages(database: Database.Database): Page[] {
  const kindOf = (name: string, path: string, pagetype: string): Kind => {
    if (name === 'sqlite_schema') {
      return 'first'
    }
    if (name !== 'plants') {
      return name === 'plants_by_tag' ? 'index' : 'other'
    }
    if (pagetype !== 'internal') {
      return pagetype as 'leaf' | 'overflow'
    }
    return path === '/' ? 'root' : 'interior'
  }
  const rows = database
    .prepare('select pageno, name, path, pagetype from dbstat order by pageno')
    .raw()
    .all()
  const used = (rows as [number, string, string, string][]).map(([number, ...rest]) => ({
    number,
    kind: kindOf(...rest),
  }))
  const numbers = new Set(used.map(({ number }) => number))
  const total = database.pragma('page_count', { simple: true }) as number
  const free = Array.from({ length: total }, (_, n) => n + 1).filter(
    number => !numbers.has(number),
  )
  return [...used, ...free.map(number => ({ number, kind: 'free' as const }))]
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
  const file = join(temporaryFolder(), 'plants.db')
  writeFileSync(file, bytes)
  return file
}

/** Comparing thousands of plants member by member takes a second. */
function digest(all: readonly Plant[]): string {
  const hash = createHash('sha256')
  for (const { id, name, tag } of all) {
    hash.update(`${JSON.stringify([`${id}`, name, tag])}\n`)
  }
  return `${all.length} plants ${hash.digest('hex')}`
}

/** Returns a sound file that SQL has changed. */
function changedFile(statements: string): string {
  const file = damagedFile([])
  new Database(file).exec(statements).close()
  return file
}

async function salvaged(file: string) {
  await using salvage = await openSalvage(`file:${file}`)
  const read: Plant[] = []
  const ofPlants = salvage.of('plants')
  for await (const each of ofPlants.all()) {
    read.push(...each)
  }
  return { read, count: ofPlants.count, unread: ofPlants.unread() }
}

test('the store has pages of every kind, and two levels above its rows', () => {
  for (const kind of kinds.filter(each => each !== 'root' && each !== 'first')) {
    expect(ofKind(kind).length, kind).toBeGreaterThan(1)
  }
})

describe(`what SQLite can find by its id is read (seed ${seed}) from a file with`, () => {
  const all = Object.keys(ways) as Way[]

  test.each(kinds.filter(each => each !== 'first'))(
    'a damaged page of the kind %s',
    async kind => {
      for (const way of all) {
        // There is one root.
        if (kind === 'root' && way === 'another page of its kind') {
          continue
        }
        const page = pick(ofKind(kind))
        const { read, count } = await expectAllOfPointReads(
          damagedFile([[page, way]]),
          `${page.number}: ${way}`,
        )
        if (kind !== 'index') {
          expect(count).toBe(plants.length)
        }
        // No more is lost than the rows of a leaf.
        if (kind !== 'root' && kind !== 'interior') {
          expect(plants.length - read.length).toBeLessThan(40)
        }
        if (['index', 'free', 'other'].includes(kind)) {
          expect(digest(read)).toBe(digest(plants))
        }
      }
    },
  )

  test('many damaged pages', async () => {
    for (let time = 0; time < 3; time++) {
      const damages = Array.from({ length: 1 + below(40) }, () => {
        const kind = pick([
          'interior',
          'leaf',
          'leaf',
          'leaf',
          'overflow',
          'index',
          'other',
        ] as const)
        return [pick(ofKind(kind)), pick(all)] as const
      })
      await expectAllOfPointReads(damagedFile(damages))
    }
    // The ends of texts are then no UTF-8.
    await expectAllOfPointReads(
      damagedFile(ofKind('overflow').map(page => [page, 'ones'] as const)),
    )
  })

  test('no end', async () => {
    for (let time = 0; time < 4; time++) {
      const file = damagedFile([])
      truncateSync(
        file,
        (pages.length - below(Math.floor(pages.length / 2))) * pageBytes -
          below(pageBytes),
      )
      await expectAllOfPointReads(file)
    }
  })
})

async function expectAllOfPointReads(file: string, where?: string) {
  const { read, count, unread } = await salvaged(file)
  expect(digest(read), where).toBe(digest(readOneByOne(file)))
  if (count !== undefined && count < read.length) {
    expect(unread, where).toBeUndefined()
  } else {
    expect([undefined, plants.length], where).toContain(count)
    if (count !== undefined) {
      expect(unread, where).toBe(count - read.length)
    }
  }
  return { read, count, unread }
}

function readOneByOne(file: string): Plant[] {
  const database = new Database(file)
  database.unsafeMode().pragma('writable_schema = on')
  const find = database
    .prepare('select id, name, tag from plants where id = ?')
    .safeIntegers()
  const found = plants.flatMap(({ id }) => {
    try {
      const { tag, ...rest } = find.get(id) as {
        id: bigint
        name: string
        tag: string | null
      }
      // In the place of bytes that are no text.
      if (`${rest.name}${tag}`.includes('\ufffd')) {
        return []
      }
      return [parsePlant(tag === null ? rest : { ...rest, tag })]
    } catch {
      return []
    }
  })
  database.close()
  return found
}

test('a store is read whose list of tables is damaged behind its plants', async () => {
  const last = ofKind('first').at(-1) as Page
  expect(last.number).toBeGreaterThan(1)
  expect(digest((await salvaged(damagedFile([[last, 'zeros']]))).read)).toBe(
    digest(plants),
  )
})

test('of rows that are out of order, as their page is in the place of another, none is read twice', async () => {
  for (let time = 0; time < 6; time++) {
    const page = pick(ofKind('leaf'))
    const { read, unread } = await salvaged(
      damagedFile([[page, 'another page of its kind']]),
    )
    expect(read).toEqual(plants.filter(({ id }) => read.some(each => each.id === id)))
    expect(unread).toBe(plants.length - read.length)
    expect(unread).toBeGreaterThan(0)
  }
})

test('how many could not be read is unknown if the index is damaged too', async () => {
  const damages = [pick(ofKind('leaf')), pick(indexLeaves())].map(
    page => [page, 'zeros'] as const,
  )
  const { count, unread } = await expectAllOfPointReads(damagedFile(damages))
  expect([count, unread]).toEqual([undefined, undefined])
})

test('a store that lacks a column of this version is read', async () => {
  const { read } = await salvaged(
    changedFile('drop index plants_by_tag; alter table plants drop column tag'),
  )
  expect(digest(read)).toBe(digest(plants.map(({ id, name }) => ({ id, name }))))
})

test('a store is closed after it was read, or if it cannot be', async () => {
  const file = damagedFile([])
  await salvaged(file)
  // By which the pages are read.
  const descriptor = openFilesIn(dirname(file))
  expect(descriptor).toEqual([file])
  await salvaged(file)
  const empty = `${file}.empty`
  createEmpty(empty)
  await expect(openSalvage(`file:${empty}`)).rejects.toThrow(/can be read: it is empty$/)
  expect(openFilesIn(dirname(file))).toEqual(descriptor)
})

test('a store that is in use is read as of one moment', async () => {
  const url = `file:${join(temporaryFolder(), 'plants.db')}`
  await using storage = await openStorage({ url })
  await storage.plants.insertAll(Array.from({ length: 2_000 }, (_, n) => plant(n)))
  await using salvage = await openSalvage(url)
  const ofPlants = salvage.of('plants')
  let read = 0
  for await (const some of ofPlants.all()) {
    if (read === 0) {
      await storage.plants.remove(plantId(1_999))
    }
    read += some.length
  }
  expect([read, ofPlants.unread()]).toEqual([2_000, 0])
})

test('a store whose version is lost is read', async () => {
  const { read } = await salvaged(changedFile('delete from schema_version'))
  expect(digest(read)).toBe(digest(plants))
})

test('an index with a page in the place of another does not count the plants', async () => {
  const [first, second] = indexLeaves() as [Page, Page]
  const { read, count } = await salvaged(damagedFile([[second, contentOf(first.number)]]))
  expect(count).toBeUndefined()
  expect(digest(read)).toBe(digest(plants))
})

test('how many could not be read is unknown if one page of the index is in the place of its first', async () => {
  const leaf = pick(indexLeaves())
  const root = ofKind('index').find(each => contentOf(each.number)[0] === 0x02) as Page
  const { count, unread } = await expectAllOfPointReads(
    damagedFile([[root, contentOf(leaf.number)]]),
  )
  expect(count).toBeLessThan(plants.length)
  expect(unread).toBeUndefined()
})

test('a store whose first page is lost is refused in one line, and so is no file', async () => {
  const file = damagedFile([[ofKind('first')[0] as Page, 'zeros']])
  await expect(openSalvage(`file:${file}`)).rejects.toMatchObject({
    message: expect.stringMatching(/^nothing in the store .* can be read: [^\n]+$/),
    cause: { code: 'SQLITE_NOTADB' },
  })
  await expect(openSalvage(`file:${file}.none`)).rejects.toThrow(/^there is no store at /)
})

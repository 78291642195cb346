import { createHash, randomFillSync } from 'node:crypto'
import fs, {
  closeSync,
  openSync,
  readdirSync,
  readFileSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { dirname, join } from 'node:path'
import { hashToken } from '@plant-store/access'
import { type Plant, parsePlant, plantIdMax, plantIdMin } from '@plant-store/domain'
import { fullPlant } from '@plant-store/domain/testing'
import { temporaryFolder as disposableFolder } from '@plant-store/harness'
import { anySeed, createRandom } from '@plant-store/harness/random'
import { isThorough } from '@plant-store/harness/vitest'
import { openSalvage, openStorage, StoreInUseError } from '@plant-store/persistence'
import Database from 'better-sqlite3'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { plant, temporaryFolder } from './store-folder.ts'

/** Small, so that few plants need two levels of pages. */
const pageBytes = 1024
const seed = anySeed()
const { below, chance, pick } = createRandom(seed)

type Kind = 'first' | 'root' | 'interior' | 'leaf' | 'overflow' | 'index' | 'free' | 'other'

/** A page as SQLite describes it, and the plants that it has a part of, by their place in the order of the ids. */
interface Page {
  readonly number: number
  readonly kind: Kind
  readonly plants: readonly number[]
}

let sound: Buffer
let plants: readonly Plant[]
let pages: readonly Page[]

beforeAll(async () => {
  using folder = disposableFolder()
  const file = join(folder.path, 'plants.db')
  const byId = Array.from({ length: 1_000 }, (_, n) => anyPlant(n)).sort((a, b) => (a.id < b.id ? -1 : 1))
  {
    createEmpty(file)
    await using storage = await openStorage({ url: `file:${file}`, queueRowsMax: byId.length })
    await Promise.all(byId.toSorted((a, b) => (a.name < b.name ? -1 : 1)).map(storage.plants.insert))
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
  const anyId = BigInt.asIntN(64, (BigInt(below(2 ** 32)) << 32n) + BigInt(below(2 ** 32)))
  const id = [plantIdMin, plantIdMax][n] ?? (n < 60 ? BigInt(n) : anyId)
  const length = chance(0.03) ? 800 + below(2_500) : 50 + below(50)
  const full = fullPlant(id, `${below(2 ** 32)} ${'ab '.repeat(length / 3)}`)
  return chance(0.5) ? full : parsePlant({ id, name: `${full.name}${n} 🌱` })
}

function describePages(database: Database.Database): Page[] {
  const rows = database
    .prepare('select name, path, pageno as number, pagetype, ncell from dbstat order by name, path')
    .all() as { name: string; path: string; number: number; pagetype: string; ncell: number }[]
  const firstOf = new Map<string, number>()
  let count = 0
  const described = rows.map(({ name, path, number, pagetype, ncell }): Page => {
    if (name === 'sqlite_schema') return { number, kind: 'first', plants: [] }
    if (name !== 'plants') return { number, kind: name === 'plants_by_tag' ? 'index' : 'other', plants: [] }
    if (pagetype === 'internal') return { number, kind: path === '/' ? 'root' : 'interior', plants: [] }
    if (pagetype === 'leaf') {
      firstOf.set(path, count)
      const first = count
      count += ncell
      return { number, kind: 'leaf', plants: Array.from({ length: ncell }, (_, n) => first + n) }
    }
    const [, leaf = '', cell = ''] = /^(.*\/)([0-9a-f]+)\+/.exec(path) ?? []
    return { number, kind: 'overflow', plants: [(firstOf.get(leaf) as number) + Number.parseInt(cell, 16)] }
  })
  const used = new Set(described.map(({ number }) => number))
  const total = database.pragma('page_count', { simple: true }) as number
  const numbers = Array.from({ length: total }, (_, n) => n + 1)
  const free = numbers.filter(number => !used.has(number))
  return [...described, ...free.map(number => ({ number, kind: 'free' as const, plants: [] }))]
}

const ofKind = (kind: Kind) => pages.filter(page => page.kind === kind)
const contentOf = (page: number) => sound.subarray((page - 1) * pageBytes, page * pageBytes)

const ways = {
  zeros: () => Buffer.alloc(pageBytes),
  ones: () => Buffer.alloc(pageBytes, 0xff),
  'any bytes': () => randomFillSync(Buffer.alloc(pageBytes)),
  'a page of another kind': ({ kind }: Page) =>
    contentOf(pick(ofKind(kind === 'index' || kind === 'overflow' ? 'leaf' : 'index')).number),
  'another page of its kind': ({ number, kind }: Page) =>
    contentOf(pick(ofKind(kind).filter(each => each.number !== number)).number),
} as const satisfies Record<string, (page: Page) => Buffer>
type Way = keyof typeof ways

function damagedFile(damages: readonly (readonly [Page, Way])[]): string {
  const bytes = Buffer.from(sound)
  for (const [page, way] of damages) ways[way](page).copy(bytes, (page.number - 1) * pageBytes)
  const file = join(temporaryFolder(), 'plants.db')
  writeFileSync(file, bytes)
  return file
}

/** Comparing thousands of plants member by member takes a second. */
function digest(all: readonly Plant[]): string {
  const hash = createHash('sha256')
  for (const { id, name, tag } of all) hash.update(`${JSON.stringify([`${id}`, name, tag])}\n`)
  return `${all.length} plants ${hash.digest('hex')}`
}

const without = (lost: ReadonlySet<number>) => digest(plants.filter((_, n) => !lost.has(n)))

async function salvaged(file: string) {
  await using salvage = await openSalvage(`file:${file}`)
  const read: Plant[] = []
  for await (const each of salvage.plants()) read.push(...each)
  return { read, count: salvage.count, ...salvage.unreadable() }
}

test('the store has pages of every kind, and two levels above its rows', () => {
  const counts = Object.groupBy(pages, ({ kind }) => kind)
  expect(counts.root).toHaveLength(1)
  for (const kind of ['interior', 'overflow', 'index', 'free', 'other'] as const)
    expect(counts[kind]?.length, kind).toBeGreaterThan(1)
  expect(counts.leaf?.flatMap(page => page.plants)).toEqual([...plants.keys()])
})

describe(`what is in sound pages is read, whatever happened to others (seed ${seed}):`, () => {
  const all = Object.keys(ways) as Way[]
  // Without checksums nobody can tell the end of one text from that of another.
  const whole = all.filter(way => way !== 'another page of its kind')
  const waysOf: Readonly<Record<Exclude<Kind, 'first'>, readonly Way[]>> = {
    root: whole,
    interior: all,
    leaf: all,
    overflow: whole,
    index: all,
    free: all,
    other: all,
  }

  test.each(Object.entries(waysOf) as [Kind, readonly Way[]][])(
    'a page of the kind %s',
    async (kind, possible) => {
      for (const way of possible) {
        for (let time = 0; time < (isThorough ? 2 : 1); time++) {
          const page = pick(ofKind(kind))
          const where = `page ${page.number}: ${way}`
          const found = await salvaged(damagedFile([[page, way]]))
          const lost = new Set(page.plants)
          expect(digest(found.read), where).toBe(without(lost))
          if (kind !== 'index') expect(found.count, where).toBe(plants.length)
          else expect([undefined, plants.length], where).toContain(found.count)
          expect([found.pages, found.plants], where).toEqual(
            kind === 'overflow' ? [0, 1] : [['root', 'interior', 'leaf'].includes(kind) ? 1 : 0, 0],
          )
        }
      }
    },
  )

  test('a page of another table in the place of that of a third', async () => {
    const others = ofKind('other')
    for (const page of others) {
      for (const other of isThorough ? others : [pick(others), pick(others)]) {
        const bytes = Buffer.from(sound)
        contentOf(other.number).copy(bytes, (page.number - 1) * pageBytes)
        const file = join(temporaryFolder(), 'plants.db')
        writeFileSync(file, bytes)
        expect(digest((await salvaged(file)).read), `${page.number} is ${other.number}`).toBe(digest(plants))
      }
    }
  })

  test('many pages at once', async () => {
    for (let time = 0; time < (isThorough ? 8 : 3); time++) {
      const kinds = ['interior', 'leaf', 'leaf', 'leaf', 'overflow', 'overflow', 'index', 'other'] as const
      const damages = Array.from({ length: 1 + below(40) }, () => {
        const kind = pick(kinds)
        return [pick(ofKind(kind)), pick(waysOf[kind])] as const
      })
      const found = await salvaged(damagedFile(damages))
      const lost = new Set(damages.flatMap(([page]) => page.plants))
      // A page that is lost may have a copy in the place of another one that is.
      const ids = new Set(found.read.map(({ id }) => id))
      expect(digest(found.read)).toBe(digest(plants.filter((each, n) => !lost.has(n) || ids.has(each.id))))
    }
  })

  test('a part of a page', async () => {
    const sectorBytes = 128
    for (let time = 0; time < (isThorough ? 16 : 5); time++) {
      const page = pick([...ofKind('leaf'), ...ofKind('interior')])
      const bytes = Buffer.from(sound)
      const at = (page.number - 1) * pageBytes + sectorBytes * below(pageBytes / sectorBytes)
      const sector = bytes.subarray(at, at + sectorBytes)
      if (chance(0.5)) sector.fill(0)
      else randomFillSync(sector)
      const file = join(temporaryFolder(), 'plants.db')
      writeFileSync(file, bytes)
      const found = await salvaged(file)
      const inPage = new Set(page.plants)
      const ids = new Set(found.read.map(({ id }) => id))
      expect(digest(found.read)).toBe(digest(plants.filter((each, n) => !inPage.has(n) || ids.has(each.id))))
      expect(found.count).toBe(plants.length)
    }
  })

  test('the end of the file', async () => {
    for (let time = 0; time < (isThorough ? 6 : 3); time++) {
      const left = 1 + below(pages.length - 1)
      const file = damagedFile([])
      truncateSync(file, left * pageBytes - below(pageBytes))
      const lost = new Set(pages.filter(({ number }) => number >= left).flatMap(page => page.plants))
      const { read } = await salvaged(file).catch(error => {
        expect(ofKind('first').some(({ number }) => number >= left)).toBe(true)
        expect(error.message).toMatch(/^nothing in the store .* can be read: /)
        return { read: [] }
      })
      // Without the list of free pages, those below a page that is lost are not read.
      const isWhole = [...ofKind('root'), ...ofKind('interior'), ...ofKind('free')].every(
        ({ number }) => number < left,
      )
      const kept = new Set(read.map(({ id }) => id))
      const expected = plants.filter((each, n) => !lost.has(n) && (isWhole || kept.has(each.id)))
      expect(digest(read), `${left} pages`).toBe(digest(expected))
    }
  })
})

test('without the list of free pages, none of them is taken for one that is lost', async () => {
  const list = sound.readUInt32BE(32)
  const damaged = pages.filter(({ number, kind }) => kind === 'root' || number === list)
  expect(damaged).toHaveLength(2)
  const found = await salvaged(damagedFile(damaged.map(page => [page, 'any bytes'])))
  expect(found).toEqual({ read: [], count: plants.length, pages: 1, plants: 0 })
})

test('rows of another table are not taken for plants, whose root is lost', async () => {
  const file = join(temporaryFolder(), 'plants.db')
  createEmpty(file)
  const own = Array.from({ length: 300 }, (_, n) => plant(1_000 + n))
  {
    await using storage = await openStorage({ url: `file:${file}` })
    await storage.plants.insertAll?.(own)
    const token = { name: 'a', scopes: ['plants:read'], createdAt: new Date(0) } as const
    await storage.tokens.insert(token, hashToken('a'))
  }
  const database = new Database(file)
  database.exec(`
    create table longer (id integer primary key, name text, tag text, version integer, more text);
    insert into longer values (10, 'a', 'b', 1, 'c');
    create table without_id (name text, tag text);
    insert into without_id (rowid, name, tag) values (20, 'a', 'b');
    create table other_type (id integer primary key, name text, tag text, version text);
    insert into other_type values (30, 'a', 'b', 'c');
  `)
  const root = database
    .prepare("select rootpage from sqlite_schema where name = 'plants'")
    .pluck()
    .get() as number
  database.close()
  const bytes = readFileSync(file)
  bytes.fill(0, (root - 1) * pageBytes, root * pageBytes)
  writeFileSync(file, bytes)
  expect(await salvaged(file)).toEqual({ read: own, count: own.length, pages: 1, plants: 0 })
})

test('a page in the place of the one above it is betrayed by the index', async () => {
  const [root, interior] = [ofKind('root')[0] as Page, ofKind('interior')[0] as Page]
  const bytes = Buffer.from(sound)
  contentOf(interior.number).copy(bytes, (root.number - 1) * pageBytes)
  const file = join(temporaryFolder(), 'plants.db')
  writeFileSync(file, bytes)
  const { read, count } = await salvaged(file)
  expect(read.length).toBeLessThan(plants.length)
  expect(count).toBe(plants.length)
})

test('a sound store is read whole, and left as it is', async () => {
  const file = damagedFile([])
  const { read, ...rest } = await salvaged(file)
  expect(digest(read)).toBe(digest(plants))
  expect(rest).toEqual({ count: plants.length, pages: 0, plants: 0 })
  expect(readFileSync(file).equals(sound)).toBe(true)
  expect(readdirSync(dirname(file))).toEqual(['plants.db'])
})

test('what is only in the log is read too', async () => {
  const file = join(temporaryFolder(), 'plants.db')
  const copy = join(temporaryFolder(), 'copy.db')
  {
    await using storage = await openStorage({ url: `file:${file}` })
    await storage.plants.insert(plant(7, 'in the log'))
    for (const suffix of ['', '-wal']) writeFileSync(copy + suffix, readFileSync(file + suffix))
  }
  expect((await salvaged(copy)).read).toEqual([plant(7, 'in the log')])
})

test('a store of an earlier version is read, and one with rows from before its last migration', async () => {
  using folder = disposableFolder()
  const file = join(folder.path, 'plants.db')
  const database = new Database(file)
  database.exec(`
    create table schema_version (version integer not null) strict;
    insert into schema_version values (2);
    create table plants (id integer not null primary key, name text not null, tag text) strict;
    create index plants_by_tag on plants (tag, id);
    create table access_tokens (
      name text not null primary key, hash text not null unique, scopes text not null,
      created_at integer not null, expires_at integer, last_used_at integer
    ) strict;
    insert into plants values (${-(2n ** 63n)}, 'least', null), (1, 'first', null), (2, 'second', '');
  `)
  database.close()
  const before = [plant(-(2n ** 63n), 'least'), plant(1, 'first'), plant(2, 'second', '')]
  expect((await salvaged(file)).read).toEqual(before)
  {
    await using storage = await openStorage({ url: `file:${file}` })
    await storage.plants.insert(plant(3, 'third', 'new'))
  }
  // SQLite keeps 0 and 1 without a byte, and other integers in as many as they need.
  const versions = [0n, 1n, -1n, 2n ** 15n, 2n ** 23n - 1n, -(2n ** 31n), 2n ** 47n - 1n, 2n ** 63n - 1n]
  const changed = new Database(file)
  for (const [n, version] of versions.entries())
    changed
      .prepare('insert into plants (id, name, version) values (?, ?, ?)')
      .run(10 + n, `${version}`, version)
  changed.close()
  const expected = [
    ...before,
    plant(3, 'third', 'new'),
    ...versions.map((each, n) => plant(10 + n, `${each}`)),
  ]
  expect(await salvaged(file)).toEqual({ read: expected, count: expected.length, pages: 0, plants: 0 })
})

test.each([
  ['of 512 bytes', 512],
  ['of 65536 bytes', 65_536],
])('pages %s, as somebody may have set, are read too', async (_, size) => {
  const file = damagedFile([])
  const database = new Database(file)
  database.exec(`pragma journal_mode = delete; pragma page_size = ${size}; vacuum`)
  database.close()
  expect(readFileSync(file).readUInt16BE(16)).toBe(size % 65_535)
  const { read, ...rest } = await salvaged(file)
  expect(digest(read)).toBe(digest(plants))
  expect(rest).toEqual({ count: plants.length, pages: 0, plants: 0 })
})

test('bytes that each page reserves for others are no part of a text', async () => {
  const file = join(temporaryFolder(), 'plants.db')
  createEmpty(file)
  const first = readFileSync(file)
  const reserved = 8
  first.writeUInt8(reserved, 20)
  first.writeUInt16BE(pageBytes - reserved, 105)
  writeFileSync(file, first)
  const long = plant(1, 'long '.repeat(4_000))
  {
    await using storage = await openStorage({ url: `file:${file}` })
    await storage.plants.insert(long)
    await storage.plants.insert(plant(2))
  }
  expect(readFileSync(file).readUInt8(20)).toBe(reserved)
  expect(await salvaged(file)).toEqual({ read: [long, plant(2)], count: 2, pages: 0, plants: 0 })
})

test('an empty store has no plants, with pages of any size', async () => {
  const file = join(temporaryFolder(), 'plants.db')
  await (await openStorage({ url: `file:${file}` }))[Symbol.asyncDispose]()
  const nothing = { read: [], count: 0, pages: 0, plants: 0 }
  expect(await salvaged(file)).toEqual(nothing)
  const database = new Database(file)
  database.exec('pragma journal_mode = delete; pragma page_size = 65536; vacuum')
  database.close()
  expect(await salvaged(file)).toEqual(nothing)
})

test('two plants whose texts go on in the same page are not read, as one of them would be wrong', async () => {
  const file = join(temporaryFolder(), 'plants.db')
  createEmpty(file)
  {
    await using storage = await openStorage({ url: `file:${file}` })
    for (const [id, name] of ['a', 'b', 'c'].entries())
      await storage.plants.insert(plant(id, name.repeat(2_000)))
  }
  const database = new Database(file)
  const firstOverflow = database.prepare(
    "select pageno from dbstat where name = 'plants' and path like '%+000000' order by path",
  )
  const root = database
    .prepare("select rootpage from sqlite_schema where name = 'plants'")
    .pluck()
    .get() as number
  const numbers = (firstOverflow.pluck().all() as number[]).map(number => {
    const pointer = Buffer.alloc(4)
    pointer.writeUInt32BE(number)
    return pointer
  })
  database.close()
  const bytes = readFileSync(file)
  const [a, b] = numbers as [Buffer, Buffer]
  b.copy(bytes, bytes.indexOf(a, (root - 1) * pageBytes))
  writeFileSync(file, bytes)
  expect(await salvaged(file)).toEqual({ read: [plant(2, 'c'.repeat(2_000))], count: 3, pages: 0, plants: 2 })
})

test.runIf(process.platform === 'linux')(
  'a store is closed after it was read, or if it cannot be',
  async () => {
    const file = damagedFile([])
    const openFiles = () => readdirSync('/proc/self/fd').length
    const before = openFiles()
    await salvaged(file)
    expect(openFiles()).toBe(before)

    const failing = vi.spyOn(fs, 'readSync').mockImplementation(() => {
      throw new Error('the disk fails')
    })
    syncBuiltinESMExports()
    try {
      await expect(openSalvage(`file:${file}`)).rejects.toThrow(/can be read: the disk fails$/)
    } finally {
      failing.mockRestore()
      syncBuiltinESMExports()
    }
    expect(openFiles()).toBe(before)
  },
)

test('a page that can no longer be read is counted, and the others are read', async () => {
  const file = damagedFile([])
  const page = pick(ofKind('leaf'))
  await using salvage = await openSalvage(`file:${file}`)
  const descriptor = openSync(file, 'r+')
  writeSync(descriptor, Buffer.alloc(pageBytes), 0, pageBytes, (page.number - 1) * pageBytes)
  closeSync(descriptor)
  const read: Plant[] = []
  for await (const each of salvage.plants()) read.push(...each)
  expect(digest(read)).toBe(without(new Set(page.plants)))
  expect(salvage.unreadable()).toEqual({ pages: 1, plants: 0 })
})

test('a store that is in use is refused', async () => {
  const file = join(temporaryFolder(), 'plants.db')
  await using _storage = await openStorage({ url: `file:${file}` })
  await expect(openSalvage(`file:${file}`)).rejects.toThrow(StoreInUseError)
})

test('a store without a log is refused while another program changes it', async () => {
  const file = damagedFile([])
  const other = new Database(file)
  other.exec('pragma journal_mode = delete; begin immediate')
  await expect(openSalvage(`file:${file}`)).rejects.toMatchObject({
    name: 'StoreInUseError',
    cause: { code: 'SQLITE_BUSY' },
  })
  other.close()
})

test('a store whose version is lost is read', async () => {
  const file = damagedFile([])
  const database = new Database(file)
  database.exec('delete from schema_version')
  database.close()
  expect(digest((await salvaged(file)).read)).toBe(digest(plants))
})

test.each<[string, (leaves: readonly number[], bytes: Buffer) => void]>([
  [
    'has an entry twice',
    ([first], bytes) => {
      const pointers = ((first as number) - 1) * pageBytes + 8
      bytes.copyWithin(pointers + 2, pointers, pointers + 2)
    },
  ],
  [
    'has the last tags before the first',
    ([first, ...others], bytes) =>
      contentOf(others.at(-1) as number).copy(bytes, ((first as number) - 1) * pageBytes),
  ],
  [
    'has the same tags once more',
    ([first, second], bytes) => contentOf(first as number).copy(bytes, ((second as number) - 1) * pageBytes),
  ],
])('an index that %s does not count the plants', async (_, damage) => {
  const indexLeaf = 0x0a
  const leaves = ofKind('index').filter(({ number }) => contentOf(number)[0] === indexLeaf)
  const file = damagedFile([])
  const bytes = Buffer.from(sound)
  damage(
    leaves.map(({ number }) => number),
    bytes,
  )
  writeFileSync(file, bytes)
  const { read, count } = await salvaged(file)
  expect(count).toBeUndefined()
  expect(digest(read)).toBe(digest(plants))
})

test('a store of a newer version is refused', async () => {
  const file = damagedFile([])
  const database = new Database(file)
  database.exec('update schema_version set version = 99')
  database.close()
  await expect(openSalvage(`file:${file}`)).rejects.toThrow(/schema version 99, .* run a newer one/)
})

test('plants with a column that this version does not know are refused', async () => {
  const file = damagedFile([])
  const database = new Database(file)
  database.exec('alter table plants add column height integer')
  database.close()
  await expect(openSalvage(`file:${file}`)).rejects.toThrow(/columns that this version does not know$/)
})

test('a database without tables is refused as empty', async () => {
  const file = join(temporaryFolder(), 'plants.db')
  createEmpty(file)
  await expect(openSalvage(`file:${file}`)).rejects.toThrow(/can be read: it is empty$/)
})

test.each([
  [
    'a first page that is lost',
    Buffer.alloc(pageBytes),
    /nothing in the store .* can be read: /,
    'SQLITE_NOTADB',
  ],
  ['no file', undefined, /there is no store at /, undefined],
])('%s is refused in one line', async (_, content, refusal, code) => {
  const file = join(temporaryFolder(), 'plants.db')
  if (content) writeFileSync(file, Buffer.concat([content, sound.subarray(pageBytes)]))
  const error = await openSalvage(`file:${file}`).catch(error => error)
  expect(error.message).toMatch(refusal)
  expect(error.cause?.code).toBe(code)
})

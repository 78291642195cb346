import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { hashToken } from '@plant-store/access'
import { int64Max, int64Min, type Plant } from '@plant-store/domain'
import { edgeIds, fullPlant, texts } from '@plant-store/domain/testing'
import { createTestDatabase } from '@plant-store/harness/vitest'
import {
  inspectStore,
  openReader,
  openStorage,
  type StoreReader,
} from '@plant-store/persistence'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { startProxy } from './proxy.ts'
import { plant, plantId, schemaVersion, temporaryFolder } from './store-folder.ts'
import { type Subject, subjects } from './store-subjects.ts'

async function plantsIn(reader: StoreReader): Promise<Plant[]> {
  const plants: Plant[] = []
  for await (const some of reader.all('plants')) {
    plants.push(...some)
  }
  return plants
}

const many = (count: number, name = 'before') =>
  Array.from({ length: count }, (_, n) => plant(n, name))

describe.each(['SQLite', 'PostgreSQL'] as const)('a reader of a store on %s', name => {
  let store: Subject
  beforeEach(async () => {
    store = await subjects[name]()
  })
  afterEach(() => store[Symbol.asyncDispose]())

  async function fill(plants: readonly Plant[]) {
    await using storage = await openStorage({ url: store.url })
    await storage.plants.insertAll(plants)
  }

  test('has every id and text exactly, in numeric order', async () => {
    await fill([])
    {
      await using reader = await openReader(store.url)
      expect(new Set(Object.values(await reader.counts()))).toEqual(new Set([0]))
      expect(await plantsIn(reader)).toEqual([])
    }
    const plants = edgeIds.map((id, n) => {
      const text = texts[n % texts.length] as string
      return n % 3 === 0 ? plant(id, text) : fullPlant(id, text)
    })
    await fill(plants.toReversed())
    await using reader = await openReader(store.url)
    expect(await plantsIn(reader)).toEqual(plants)
    expect(reader.schemaVersion).toBe(schemaVersion)
    expect(await reader.counts()).toMatchObject({ plants: plants.length, tokens: 0 })
  })

  test('reaches from the least id to the greatest, where pages begin and end with them, and lets others act', async () => {
    const ids = [...Array(1_000).keys()].map(BigInt)
    const plants = [
      ...ids.map(n => plant(int64Min + n)),
      ...ids.map(n => plant(int64Max - 999n + n)),
    ]
    await fill(plants)
    await using reader = await openReader(store.url)
    const others = vi.fn()
    setImmediate(others)
    expect(await plantsIn(reader)).toEqual(plants)
    expect(others).toHaveBeenCalled()
  })

  test('is of one moment, whatever is changed meanwhile, and is read a few plants at a time', async () => {
    await using storage = await openStorage({ url: store.url })
    await storage.plants.insertAll(many(5_000))
    const token = {
      name: 'shop',
      scopes: ['plants:read'],
      createdAt: new Date(0),
    } as const
    await storage.tokens.insert(token, hashToken('secret'))
    await using reader = await openReader(store.url)
    await storage.plants.remove(plantId(0))
    const read: Plant[] = []
    for await (const some of reader.all('plants')) {
      if (read.length === 0) {
        await storage.plants.insert(plant(10_000, 'after'))
        await storage.plants.save(plant(4_999, 'after'))
      }
      expect(some.length).toBeLessThanOrEqual(2_000)
      read.push(...some)
    }
    expect(read).toEqual(many(5_000))
    expect(await reader.counts()).toMatchObject({ plants: 5_000, tokens: 1 })
    await using later = await openReader(store.url)
    expect((await plantsIn(later)).slice(-2)).toEqual([
      plant(4_999, 'after'),
      plant(10_000, 'after'),
    ])
  })

  test('is refused by an empty database, which stays so', async () => {
    await store.run(
      ...(store.url.startsWith('file:') ? ['pragma user_version = 1'] : ['select 1']),
    )
    const before = await store.fingerprint()
    await expect(openReader(store.url)).rejects.toThrow(/cannot be opened: it is empty$/)
    await expect(inspectStore(store.url)).rejects.toThrow(
      /cannot be opened: it is empty$/,
    )
    expect(await store.fingerprint()).toBe(before)
  })
})

test('a reader that meets damage says so', async () => {
  const file = join(temporaryFolder(), 'store.db')
  const url = `file:${file}`
  {
    await using storage = await openStorage({ url })
    await storage.plants.insertAll(many(5_000))
  }
  await using reader = await openReader(url)
  const pages = reader.all('plants')[Symbol.asyncIterator]()
  await pages.next()
  const bytes = readFileSync(file)
  writeFileSync(file, bytes.fill(0xff, bytes.length / 4))
  await expect(pages.next()).rejects.toMatchObject({
    code: 'store-unavailable',
    message: 'the store cannot be read: it is damaged',
  })
})

test('a reader of a server that is gone says so, and leaves no connection', async () => {
  await using database = await createTestDatabase()
  await (await openStorage({ url: database.url }))[Symbol.asyncDispose]()
  const proxy = await startProxy(database.url)
  {
    await using reader = await openReader(proxy.url)
    await proxy[Symbol.asyncDispose]()
    await expect(plantsIn(reader)).rejects.toMatchObject({
      code: 'store-unavailable',
      message: expect.stringMatching(/^the store cannot be read: ./),
    })
  }
  await expect(openReader(proxy.url)).rejects.toThrow(
    /^the store .* cannot be opened: .*ECONNREFUSED/,
  )
  const others = `select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`
  await expect.poll(() => database.query(others)).toEqual([])
})

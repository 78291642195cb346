import {
  type Plant,
  type PlantRepository,
  parsePlant,
  type UnicodeText,
  type Version,
} from '@plant-store/domain'
import { createMemoryPlantRepository } from '@plant-store/domain/testing'
import type { Commit } from '@plant-store/engine'
import type { TestDatabase } from '@plant-store/harness/postgres'
import { anySeed, createRandom } from '@plant-store/harness/random'
import { createTestDatabase, createTestSchema } from '@plant-store/harness/vitest'
import { attachStorage, openStorage, type Storage } from '@plant-store/persistence'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'

let database: TestDatabase
let storage: Storage

beforeAll(async () => {
  database = await createTestDatabase()
  storage = await openStorage({ url: database.url })
})
beforeEach(async () => {
  await database.query('truncate plants')
})
afterAll(async () => {
  await storage[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})

const plant = (id: number, name: string, tag?: string): Plant =>
  parsePlant({ id: BigInt(id), name, tag })

test('changes of the same few plants that are all on their way at once take effect in their order', async () => {
  const seed = anySeed()
  const { below } = createRandom(seed)
  const memory = createMemoryPlantRepository()
  const ids = Array.from({ length: 8 }, (_, n) => plant(n, '').id)
  for (let round = 0; round < 8; round++) {
    // The versions of each store differ, but mark the same states.
    const before = await Promise.all(
      [storage.plants, memory].map(on =>
        Promise.all(ids.map(async id => (await on.find(id))?.version)),
      ),
    )
    const changes = Array.from({ length: 200 }, (_, n) => {
      const one = plant(
        below(8),
        `plant ${n}`,
        below(2) === 0 ? undefined : `tag ${below(3)}`,
      )
      const expected = (on: PlantRepository) =>
        before[on === memory ? 1 : 0]?.[Number(one.id)]
      return (
        [
          on => on.insert(one),
          on => on.save(one),
          on => on.remove(one.id),
          on => on.saveIf(one, expected(on)),
          on => on.saveIf(one, undefined),
          on => on.removeIf(one.id, expected(on) ?? ('none' as Version)),
        ] as Change[]
      )[below(6)] as Change
    })
    const outcomes = await Promise.all(changes.map(change => change(storage.plants)))
    const wanted = await Promise.all(changes.map(change => change(memory)))
    const withoutVersion = (outcome: unknown) =>
      /^(v\d+|[0-9a-f]{16})$/.test(`${outcome}`) ? 'saved' : outcome
    expect(outcomes.map(withoutVersion), `seed ${seed}`).toEqual(
      wanted.map(withoutVersion),
    )
    expect(await storage.plants.page({ limit: 100 }), `seed ${seed}`).toEqual(
      await memory.page({ limit: 100 }),
    )
  }
})

test('a store that is joined reports its own commits, and closes its connections', async () => {
  await using own = await createTestDatabase()
  const begunMs = performance.now()
  const commits: Commit[] = []
  {
    await using store = await openStorage({ url: own.url })
    await using joined = await attachStorage(store.share(), {
      onCommit: commit => commits.push(commit),
    })
    await store.plants.insert(plant(1, 'a'))
    await joined.plants.insert(plant(2, 'b'))
  }
  expect(commits).toEqual([{ changes: 1, ms: expect.any(Number) }])
  expect(commits[0]?.ms).toBeLessThan(performance.now() - begunMs)
  const others = `select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`
  await expect.poll(() => own.query(others)).toEqual([])
})

type Change = (on: PlantRepository) => Promise<unknown>

test('finds plants by tags that are longer than an entry of an index, and differ at their end', async () => {
  const { below } = createRandom(1)
  const long = Array.from({ length: 50_000 }, () =>
    String.fromCodePoint(0x4e00 + below(20_000)),
  ).join('')
  await storage.plants.insert(plant(1, 'a', `${long}a`))
  await storage.plants.insert(plant(2, 'b', `${long}b`))
  await storage.plants.save(plant(3, 'b', `${long}b`))
  const found = await storage.plants.page({
    limit: 10,
    tag: plant(0, '', `${long}b`).tag as UnicodeText,
  })
  expect(found.map(({ id }) => id)).toEqual([2n, 3n])
})

test('finds the plants of a tag by an index', async () => {
  await using own = await createTestSchema()
  const other = await openStorage({ url: own.url })
  await own.query(
    `insert into plants select n, 'plant', 'tag ' || n % 1000 from generate_series(1, 50000) as n; analyze plants`,
  )
  const tag = plant(0, '', 'tag 7').tag as UnicodeText
  // More often than the server plans for each value.
  for (let n = 0; n < 10; n++) {
    expect(await other.plants.page({ limit: 100, tag })).toHaveLength(50)
  }
  await other[Symbol.asyncDispose]()
  const counted = `select idx_tup_read::int as count from pg_stat_user_indexes
    where indexrelname = 'plants_by_tag' and schemaname = current_schema()`
  await expect.poll(() => own.query(counted)).toEqual([{ count: 500 }])
})

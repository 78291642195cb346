import assert from 'node:assert/strict'
import {
  type Plant,
  type PlantId,
  type PlantRepository,
  parsePlant,
  type UnicodeText,
  type Version,
} from '@plant-store/domain'
import { createMemoryPlantRepository } from '@plant-store/domain/testing'
import type { TestDatabase } from '@plant-store/harness/postgres'
import { anySeed, createRandom, type Random } from '@plant-store/harness/random'
import { createTestDatabase, createTestSchema } from '@plant-store/harness/vitest'
import { openStorage, type Storage } from '@plant-store/persistence'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'

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

function tagOf(text: string): UnicodeText {
  const { tag } = plant(0, '', text)
  assert(tag !== undefined, 'the plant has a tag')
  return tag
}

describe('concurrent changes of the same few plants', () => {
  const plantsCount = 8
  const ids = Array.from({ length: plantsCount }, (_, id) => plant(id, '').id)

  /** A change, given the versions that the plants had before. */
  type RandomChange = (
    plants: PlantRepository,
    versions: ReadonlyMap<PlantId, Version>,
  ) => Promise<unknown>

  function randomChange({ below, chance, pick }: Random, name: string): RandomChange {
    const tag = chance(0.5) ? `tag ${below(3)}` : undefined
    const changed = plant(below(plantsCount), name, tag)
    const { id } = changed
    // No plant has this version.
    const noVersion = 'none' as Version
    return pick<RandomChange>([
      plants => plants.insert(changed),
      plants => plants.save(changed),
      plants => plants.remove(id),
      plants => plants.saveIf(changed, undefined),
      (plants, versions) => plants.saveIf(changed, versions.get(id)),
      (plants, versions) => plants.removeIf(id, versions.get(id) ?? noVersion),
    ])
  }

  /** Makes changes at once. Resolves to the outcome of each, without versions. */
  async function changeAtOnce(
    plants: PlantRepository,
    changes: readonly RandomChange[],
  ): Promise<readonly unknown[]> {
    const versions = new Map<PlantId, Version>()
    for (const id of ids) {
      const found = await plants.find(id)
      if (found !== undefined) {
        versions.set(id, found.version)
      }
    }
    const outcomes = await Promise.all(changes.map(change => change(plants, versions)))
    // The versions of two stores differ, but mark the same states.
    return outcomes.map(withoutVersion)
  }

  function withoutVersion(outcome: unknown): unknown {
    if (typeof outcome === 'object' && outcome !== null) {
      return { ...outcome, version: 'saved' }
    }
    const isVersion = /^(v\d+|[0-9a-f]{16})$/.test(`${outcome}`)
    return isVersion ? 'saved' : outcome
  }

  test('take effect in their order', async () => {
    const seed = anySeed()
    const random = createRandom(seed)
    const memory = createMemoryPlantRepository()

    for (let round = 0; round < 8; round++) {
      const changes = Array.from({ length: 200 }, (_, number) =>
        randomChange(random, `plant ${number}`),
      )
      const outcomes = await changeAtOnce(storage.plants, changes)
      const expected = await changeAtOnce(memory, changes)
      const stored = await storage.plants.page({ limit: 100 })
      const expectedPlants = await memory.page({ limit: 100 })

      const where = `round ${round} of seed ${seed}`
      expect(outcomes, where).toEqual(expected)
      expect(stored, where).toEqual(expectedPlants)
    }
  })
})

describe('the plants of a tag', () => {
  /** An entry of an index has at most 2,704 bytes. */
  function createLongText(): string {
    const { below } = createRandom(1)
    const characters = Array.from({ length: 50_000 }, () =>
      String.fromCodePoint(0x4e00 + below(20_000)),
    )
    return characters.join('')
  }

  test('are found if tags are too long for an index, and differ at the end', async () => {
    const long = createLongText()
    await storage.plants.insert(plant(1, 'a', `${long}a`))
    await storage.plants.insert(plant(2, 'b', `${long}b`))
    await storage.plants.save(plant(3, 'b', `${long}b`))

    const found = await storage.plants.page({ limit: 10, tag: tagOf(`${long}b`) })

    expect(found.map(({ id }) => id)).toEqual([2n, 3n])
  })

  test('are found by an index', async () => {
    await using own = await createTestSchema()
    const sizes: number[] = []
    {
      await using ownStorage = await openStorage({ url: own.url })
      await own.query(`
        insert into plants
        select n, 'plant', 'tag ' || n % 1000 from generate_series(1, 50000) as n;
        analyze plants`)
      // The server plans the first five times for the value, and then perhaps for any.
      for (let times = 0; times < 10; times++) {
        const page = await ownStorage.plants.page({ limit: 100, tag: tagOf('tag 7') })
        sizes.push(page.length)
      }
    }

    expect(sizes).toEqual(Array(10).fill(50))
    const rowsRead = `select idx_tup_read::int as count from pg_stat_user_indexes
      where indexrelname = 'plants_by_tag' and schemaname = current_schema()`
    const counts = () => own.query(rowsRead)
    await expect.poll(counts).toEqual([{ count: 500 }])
  })
})

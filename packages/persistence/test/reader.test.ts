import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { hashToken } from '@plant-store/access'
import { int64Max, int64Min, type Plant } from '@plant-store/domain'
import { edgeIds, fullPlant, texts } from '@plant-store/domain/testing'
import {
  inspectStore,
  openReader,
  openStorage,
  type StoreReader,
} from '@plant-store/persistence'
import { describe, expect, test, vi } from 'vitest'
import { databases, usePlace } from './each-database.ts'
import { plant, plantId, schemaVersion, temporaryFolder } from './store-folder.ts'
import type { Subject } from './store-subjects.ts'

async function plantsIn(reader: StoreReader): Promise<Plant[]> {
  const plants: Plant[] = []
  for await (const some of reader.all('plants')) {
    plants.push(...some)
  }
  return plants
}

function manyPlants(count: number, name = 'before'): Plant[] {
  return Array.from({ length: count }, (_, index) => plant(index, name))
}

async function fill(place: Subject, plants: readonly Plant[]): Promise<void> {
  await using storage = await openStorage({ url: place.url })
  await storage.plants.insertAll(plants)
}

describe.each(databases)('a reader of a store on %s', name => {
  const place = usePlace(name)

  test('finds nothing in an empty store', async () => {
    await fill(place.current, [])
    await using reader = await openReader(place.current.url)

    expect(await reader.counts()).toEqual({ plants: 0, tokens: 0, webhooks: 0 })
    expect(await plantsIn(reader)).toEqual([])
  })

  test('has every id and text exactly, in numeric order', async () => {
    const plants = edgeIds.map((id, index) => {
      const text = texts[index % texts.length] ?? ''
      return index % 3 === 0 ? plant(id, text) : fullPlant(id, text)
    })
    await fill(place.current, plants.toReversed())
    await using reader = await openReader(place.current.url)

    expect(await plantsIn(reader)).toEqual(plants)
    expect(reader.schemaVersion).toBe(schemaVersion)
    expect(await reader.counts()).toMatchObject({ plants: plants.length, tokens: 0 })
  })

  test('begins and ends pages with the least and the greatest id', async () => {
    const offsets = Array.from({ length: 1_000 }, (_, index) => BigInt(index))
    const plants = [
      ...offsets.map(offset => plant(int64Min + offset)),
      ...offsets.toReversed().map(offset => plant(int64Max - offset)),
    ]
    await fill(place.current, plants)
    await using reader = await openReader(place.current.url)

    expect(await plantsIn(reader)).toEqual(plants)
  })

  test('lets others act between two pages', async () => {
    await fill(place.current, manyPlants(2_000))
    await using reader = await openReader(place.current.url)
    const others = vi.fn()
    setImmediate(others)

    await plantsIn(reader)

    expect(others).toHaveBeenCalled()
  })

  test('counts tokens, too', async () => {
    await using storage = await openStorage({ url: place.current.url })
    const token = { name: 'shop', scopes: [], createdAt: new Date(0) }
    await storage.tokens.insert(token, hashToken('secret'))
    await using reader = await openReader(place.current.url)

    expect(await reader.counts()).toEqual({ plants: 0, tokens: 1, webhooks: 0 })
  })

  test('is refused by an empty database, which stays so', async () => {
    const isFile = place.current.url.startsWith('file:')
    await place.current.run(isFile ? 'pragma user_version = 1' : 'select 1')
    const before = await place.current.fingerprint()

    const refusal = /cannot be opened: it is empty$/
    await expect(openReader(place.current.url)).rejects.toThrow(refusal)
    await expect(inspectStore(place.current.url)).rejects.toThrow(refusal)
    expect(await place.current.fingerprint()).toBe(before)
  })
})

describe.each(databases)('while a store on %s is changed, a reader', name => {
  const place = usePlace(name)

  test('sees one moment, whatever is changed meanwhile', async () => {
    await using storage = await openStorage({ url: place.current.url })
    await storage.plants.insertAll(manyPlants(5_000))
    await using reader = await openReader(place.current.url)
    await storage.plants.remove(plantId(0))

    const plants: Plant[] = []
    for await (const some of reader.all('plants')) {
      const isFirstPage = plants.length === 0
      if (isFirstPage) {
        await storage.plants.insert(plant(10_000, 'after'))
        await storage.plants.save(plant(4_999, 'after'))
      }
      plants.push(...some)
    }

    expect(plants).toEqual(manyPlants(5_000))
    expect(await reader.counts()).toMatchObject({ plants: 5_000 })
    await using later = await openReader(place.current.url)
    const lastPlants = (await plantsIn(later)).slice(-2)
    expect(lastPlants).toEqual([plant(4_999, 'after'), plant(10_000, 'after')])
  })

  test('reads a few plants at a time', async () => {
    await fill(place.current, manyPlants(5_000))
    await using reader = await openReader(place.current.url)

    const sizes: number[] = []
    for await (const some of reader.all('plants')) {
      sizes.push(some.length)
    }

    expect(Math.max(...sizes)).toBeLessThanOrEqual(2_000)
  })
})

test('a reader that meets damage says so', async () => {
  const file = join(temporaryFolder(), 'store.db')
  const url = `file:${file}`
  {
    await using storage = await openStorage({ url })
    await storage.plants.insertAll(manyPlants(5_000))
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

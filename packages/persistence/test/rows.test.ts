import { Readable } from 'node:stream'
import type { Plant } from '@plant-store/domain'
import { edgeIds, texts } from '@plant-store/domain/testing'
import { openReader, openSalvage, openStorage } from '@plant-store/persistence'
import { expect, test } from 'vitest'
import { databases, makePlace, plant } from './places.ts'

/** Stores plants with odd names, and returns them. */
async function fill(url: string): Promise<readonly Plant[]> {
  const tags = [undefined, '', 'tag']
  const plants = edgeIds.map((id, index) =>
    plant(id, texts[index % texts.length], tags[index % tags.length]),
  )
  await using storage = await openStorage({ url })
  await storage.plants.insertAll(plants.toReversed())
  return plants
}

test.each(databases)('an export on %s has plants exactly', async name => {
  await using place = await makePlace(name)
  const plants = await fill(place.url)
  await using reader = await openReader(place.url)

  const pages = await Readable.from(reader.all('plants')).toArray()

  expect(pages.flat()).toEqual(plants)
  const counts = { plants: plants.length, tokens: 0, webhooks: 0 }
  expect(await reader.counts()).toEqual(counts)
})

test('a salvage has plants exactly', async () => {
  await using place = await makePlace('SQLite')
  const plants = await fill(place.url)
  await using salvage = await openSalvage(place.url)

  const pages = await Readable.from(salvage.of('plants').all()).toArray()

  expect(pages.flat()).toEqual(plants)
})

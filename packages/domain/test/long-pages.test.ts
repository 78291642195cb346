import {
  createPlantUseCases,
  type Plant,
  type PlantPageQuery,
  parsePlant,
  parsePlantPageQuery,
  textBytes,
} from '@plant-store/domain'
import { createMemoryPlantRepository, longPlant } from '@plant-store/domain/testing'
import { expect, test } from 'vitest'

const idsOf = (plants: readonly Plant[]) => plants.map(({ id }) => Number(id))

async function filled(count: number, textLength: number) {
  const plants = createMemoryPlantRepository()
  for (let n = 0; n < count; n++)
    await plants.save(parsePlant({ id: BigInt(n), name: 'x'.repeat(textLength), tag: 't' }))
  return createPlantUseCases({ plants })
}

/** The ids of page after page. */
async function pagesOf(count: number, textLength: number, query: PlantPageQuery) {
  const store = await filled(count, textLength)
  const pages: number[][] = []
  for (let from: PlantPageQuery | undefined = query; from !== undefined; ) {
    const { plants, next } = await store.list(from)
    pages.push(idsOf(plants))
    from = next === undefined ? undefined : { ...query, after: next }
  }
  return pages
}

test('a page of long texts ends early, and the next one goes on behind it', async () => {
  const query = { ...parsePlantPageQuery({ limit: 1_000, tag: 't' }), textBytesMax: 400 }
  expect(await pagesOf(10, 99, query)).toEqual([
    [0, 1, 2, 3],
    [4, 5, 6, 7],
    [8, 9],
  ])
})

test('the long plant of the samples is as long as was asked for', () => {
  expect(textBytes(longPlant(1n, 1_000))).toBe('long'.length + 1_000)
})

test('a plant that is longer than a page should be is a page', async () => {
  expect(await pagesOf(2, 500, { limit: 1_000, textBytesMax: 400 })).toEqual([[0], [1], []])
})

test('the limit ends a page that texts would end later', async () => {
  expect(await pagesOf(5, 99, { limit: 2, textBytesMax: 300 })).toEqual([[0, 1], [2, 3], [4]])
  expect(await pagesOf(4, 99, { limit: 3, textBytesMax: 300 })).toEqual([[0, 1, 2], [3]])
})

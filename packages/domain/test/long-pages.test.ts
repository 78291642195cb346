import { createPlantStore, type Plant, parsePlant, parsePlantPageQuery } from '@plant-store/domain'
import { createMemoryPlantRepository } from '@plant-store/domain/testing'
import { expect, test } from 'vitest'

const idsOf = (plants: readonly Plant[]) => plants.map(({ id }) => Number(id))

async function filled(count: number, textLength: (n: number) => number) {
  const repository = createMemoryPlantRepository()
  for (let n = 0; n < count; n++)
    await repository.save(parsePlant({ id: BigInt(n), name: 'x'.repeat(textLength(n)), tag: 't' }))
  let most = 0
  const store = createPlantStore({
    plants: {
      ...repository,
      async page(query) {
        const found = await repository.page(query)
        most = Math.max(most, found.length)
        return found
      },
    },
  })
  return { store, mostAtOnce: () => most }
}

test('a page of long texts ends early, and the next one goes on behind it', async () => {
  const { store, mostAtOnce } = await filled(60, () => 1_000_000)
  const seen: number[] = []
  let pages = 0
  let after: bigint | undefined
  do {
    const page = await store.list(parsePlantPageQuery({ limit: 1_000n, after, tag: 't' }))
    expect(page.plants.reduce((sum, { name }) => sum + name.length, 0)).toBeLessThanOrEqual(2 ** 24)
    seen.push(...idsOf(page.plants))
    after = page.next
    pages++
  } while (after !== undefined)
  expect(seen).toEqual(Array.from({ length: 60 }, (_, n) => n))
  expect(pages).toBe(4)
  expect(mostAtOnce()).toBeLessThan(200)
})

test('a plant that is longer than a page should be is a page', async () => {
  const { store } = await filled(2, () => 2 ** 24 + 1)
  const page = await store.list(parsePlantPageQuery({ limit: 1_000n }))
  expect([idsOf(page.plants), page.next]).toEqual([[0], 0n])
  expect(idsOf((await store.list(parsePlantPageQuery({ after: page.next }))).plants)).toEqual([1])
})

test.each([1, 99, 100, 128, 129, 256, 299, 300, 301, 1_000])(
  'a page of %i is as long as it can be',
  async limit => {
    const { store } = await filled(300, () => 1)
    const page = await store.list(parsePlantPageQuery({ limit: BigInt(limit) }))
    const count = Math.min(limit, 300)
    expect(idsOf(page.plants)).toEqual(Array.from({ length: count }, (_, n) => n))
    expect(page.next).toBe(limit < 300 ? BigInt(limit - 1) : undefined)
  },
)

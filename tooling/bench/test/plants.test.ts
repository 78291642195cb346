import { join } from 'node:path'
import { temporaryFolder } from '@plant-store/harness'
import { expect, test } from 'vitest'
import { countPlants, fill, idOf } from '../src/plants.ts'

test('ids are spread, and none comes twice', () => {
  const ids = Array.from({ length: 20_000 }, (_, number) => idOf(number))
  expect(new Set(ids).size).toBe(ids.length)
  const upperHalf = ids.filter(id => id >= 2n ** 51n).length
  expect(ids.every(id => id >= 0n && id < 2n ** 52n)).toBe(true)
  expect(upperHalf).toBeGreaterThan(9_000)
  expect(upperHalf).toBeLessThan(11_000)
})

test('a store is filled', async () => {
  using folder = temporaryFolder()
  const file = join(folder.path, 'plants.db')
  expect(countPlants(file)).toBe(0)
  await fill(file, 2_000)
  expect(countPlants(file)).toBe(2_000)
})

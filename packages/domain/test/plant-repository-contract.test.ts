import type { Plant, PlantRepository } from '@plant-store/domain'
import {
  createMemoryPlantRepository,
  plant,
  plantRepositoryContract,
} from '@plant-store/domain/testing'
import { expect, test } from 'vitest'
import { type Break, type Broken, everything } from './broken/break.ts'
import { brokenChanges } from './broken/changes.ts'
import { brokenConditions } from './broken/conditions.ts'
import { brokenPages } from './broken/pages.ts'
import { brokenSearches } from './broken/searches.ts'

const broken: Broken = {
  ...brokenChanges,
  ...brokenConditions,
  ...brokenPages,
  ...brokenSearches,
}

/** Returns the names of the cases that a broken repository fails. */
async function failedBy(make: Break): Promise<readonly string[]> {
  const failed: string[] = []
  for (const { name, run } of plantRepositoryContract) {
    const right = createMemoryPlantRepository()
    const repository = { ...right, ...make(right) } as PlantRepository
    await run(repository).catch(() => failed.push(name))
  }
  return failed
}

test.each(plantRepositoryContract)('the repository in memory $name', ({ run }) =>
  run(createMemoryPlantRepository()),
)

const failedCases = new Map<string, readonly string[]>()

test.each(Object.entries(broken))(
  'the contract catches a repository that %s',
  async (name, make) => {
    const failed = await failedBy(make)

    failedCases.set(name, failed)
    expect(failed).not.toEqual([])
  },
)

test('every case of the contract catches some of them', async () => {
  const useful = new Set<string>()
  for (const [name, make] of Object.entries(broken)) {
    // A run of this test alone has to fill the map.
    const failed = failedCases.get(name) ?? (await failedBy(make))
    for (const each of failed) {
      useful.add(each)
    }
  }

  const names = plantRepositoryContract.map(({ name }) => name)
  expect(names.filter(name => !useful.has(name))).toEqual([])
})

test('the repository in memory gives away nothing that changes it', async () => {
  const plants = createMemoryPlantRepository()
  await plants.insert(plant(1n))

  const page = (await plants.page(everything)) as Plant[]
  page.pop()

  expect(await plants.page(everything)).toEqual([plant(1n)])
})

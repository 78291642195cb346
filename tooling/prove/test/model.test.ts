import { join } from 'node:path'
import { createPlantUseCases, type PlantRepository } from '@plant-store/domain'
import { createMemoryPlantRepository } from '@plant-store/domain/testing'
import { temporaryFolder } from '@plant-store/harness'
import { anySeed } from '@plant-store/harness/random'
import { createTestDatabase } from '@plant-store/harness/vitest'
import { openStorage } from '@plant-store/persistence'
import { expect, test } from 'vitest'
import { runRacingModel, runSequentialModel } from '../src/model.ts'
import { operationsOn } from '../src/operations.ts'

const seed = anySeed()
console.log(`seed ${seed}`)

test.each(['SQLite', 'PostgreSQL'])(
  '%s does what a Map does, and what racing clients see has an order',
  async database => {
    await using stack = new AsyncDisposableStack()
    const url =
      database === 'SQLite'
        ? `file:${join(stack.use(temporaryFolder()).path, 'plants.db')}`
        : stack.use(await createTestDatabase()).url
    const storage = stack.use(await openStorage({ url }))
    const store = operationsOn(createPlantUseCases({ plants: storage.plants }))
    expect(await runSequentialModel(store, { seed, runs: 40 })).toBe(undefined)
    expect(await runRacingModel(store, { seed, runs: 60 })).toBe(undefined)
  },
)

const broken = (wrong: (sound: PlantRepository) => Partial<PlantRepository>) => {
  const sound = createMemoryPlantRepository()
  return operationsOn(createPlantUseCases({ plants: { ...sound, ...wrong(sound) } }))
}

test('racing clients catch a store that looks before it writes', async () => {
  const wrong = () =>
    broken(sound => ({
      async insert(plant) {
        const found = await sound.find(plant.id)
        await new Promise(setImmediate)
        if (found !== undefined) {
          return 'id-taken'
        }
        await sound.save(plant)
        return 'inserted'
      },
    }))
  expect(await runSequentialModel(wrong(), { seed, runs: 50 })).toBe(undefined)
  expect(await runRacingModel(wrong(), { seed, runs: 500 })).toMatch(/no order explains/)
})

test('a store that answers reads from before is caught', async () => {
  const wrong = broken(sound => {
    const stale = new Map<bigint, Awaited<ReturnType<PlantRepository['find']>>>()
    return {
      async find(id) {
        const shown = stale.has(id) ? stale.get(id) : await sound.find(id)
        stale.set(id, await sound.find(id))
        return shown
      },
    }
  })
  expect(await runRacingModel(wrong, { seed, runs: 300 })).toMatch(/no order explains/)
})

test('racing clients catch a store that checks the version before it writes', async () => {
  const wrong = () =>
    broken(sound => ({
      async saveIf(plant, expected) {
        const version = (await sound.find(plant.id))?.version
        await new Promise(setImmediate)
        return version === expected ? (await sound.save(plant)).version : undefined
      },
    }))
  expect(await runSequentialModel(wrong(), { seed, runs: 50 })).toBe(undefined)
  expect(await runRacingModel(wrong(), { seed, runs: 500 })).toMatch(/no order explains/)
})

test('a store that forgets the tag is caught', async () => {
  const wrong = broken(sound => ({
    save({ tag: _, ...plant }) {
      return sound.save(plant)
    },
  }))
  expect(await runSequentialModel(wrong, { seed, runs: 200 })).toMatch(
    /expected|is that of/,
  )
})

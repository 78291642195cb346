import { type Plant, type PlantRepository, parsePlantId } from '@plant-store/domain'
import {
  createMemoryPlantRepository,
  plantRepositoryContract,
} from '@plant-store/domain/testing'
import { expect, test } from 'vitest'

test.each(plantRepositoryContract)('the repository in memory $name', ({ run }) =>
  run(createMemoryPlantRepository()),
)

/** Returns methods that replace those of a right repository, to break a promise. */
type Break = (right: PlantRepository) => Partial<PlantRepository>

/** Waits until other callers had their turn. */
function later(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}

/** Damages every text on its way in. */
function storingText(damage: (text: string) => string): Break {
  const damaged = (plant: Plant): Plant => {
    const members = Object.entries(plant).map(([name, value]) => [
      name,
      typeof value === 'string' ? damage(value) : value,
    ])
    return Object.fromEntries(members)
  }
  return right => ({ insert: plant => right.insert(damaged(plant)) })
}

/** Damages every id, both on its way in and in `find`. */
function storingId(damage: (id: bigint) => bigint): Break {
  return right => ({
    insert: plant => right.insert({ ...plant, id: parsePlantId(damage(plant.id)) }),
    find: id => right.find(parsePlantId(damage(id))),
  })
}

/**
 * The faults of an adapter that come from a database, a driver or a cache. All others are
 * made by `pnpm mutate`, which breaks the repository in memory.
 */
const breaks: Readonly<Record<string, Break>> = {
  'rounds ids to JavaScript numbers': storingId(id => BigInt(Number(id))),
  'keeps 32 bits of an id': storingId(id => BigInt.asIntN(32, id)),
  'trims texts': storingText(text => text.trim()),
  'normalises texts': storingText(text => text.normalize('NFC')),
  'folds the case of texts': storingText(text => text.toLowerCase()),
  'keeps 255 characters of a text': storingText(text => text.slice(0, 255)),
  'keeps the basic plane only': storingText(text => text.replace(/[^\0-\uffff]/gu, '?')),

  'looks first and inserts later': right => ({
    async insert(plant) {
      if ((await right.find(plant.id)) !== undefined) {
        return 'id-taken'
      }
      await later()
      await right.remove(plant.id)
      return right.insert(plant)
    },
  }),
  'lets a later change overtake an earlier one': right => ({
    async save(plant) {
      await later()
      return right.save(plant)
    },
  }),
  'looks at the version first and saves later': right => ({
    async saveIf(plant, expected) {
      const isExpected = (await right.find(plant.id))?.version === expected
      await later()
      return isExpected ? (await right.save(plant)).version : undefined
    },
  }),
  'looks at the version first and removes later': right => ({
    async removeIf(id, expected) {
      const isExpected = (await right.find(id))?.version === expected
      await later()
      return isExpected && right.remove(id).then(() => true)
    },
  }),
  'returns the outcomes of many in another order': right => ({
    insertAll: async plants => (await right.insertAll(plants)).toReversed(),
    saveAll: async plants => (await right.saveAll(plants)).toReversed(),
  }),
}

test.each(Object.entries(breaks))(
  'the contract catches a repository that %s',
  async (_, breakPromise) => {
    const outcomes = await Promise.allSettled(
      plantRepositoryContract.map(({ run }) => {
        const right = createMemoryPlantRepository()
        return run({ ...right, ...breakPromise(right) })
      }),
    )

    const failures = outcomes.filter(({ status }) => status === 'rejected')
    expect(failures).not.toEqual([])
  },
)

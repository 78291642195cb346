import { randomUUID } from 'node:crypto'
import {
  isSamePlant,
  type Plant,
  type PlantId,
  type PlantRepository,
  type PlantVersion,
  parsePlant,
  type VersionedPlant,
} from '@plant-store/domain'
import { createMemoryPlantRepository } from '@plant-store/domain/testing'
import type { LoadOutcome, PlantArchive } from '@plant-store/persistence'
import { plantArchiveContract } from '@plant-store/persistence/testing'
import { describe, expect, test } from 'vitest'

function store() {
  const plants = new Map<PlantId, VersionedPlant>()
  return { archive: createMemoryPlantArchive(plants), plants: createMemoryPlantRepository(plants) }
}

describe('an archive in memory keeps the contract', () => {
  test.each(plantArchiveContract)('$name', ({ run }) => run(store()))
})

/** The archive over the plants of a {@link createMemoryPlantRepository}. */
function createMemoryPlantArchive(plants: Map<PlantId, VersionedPlant>): PlantArchive {
  const load: PlantArchive['load'] = async (given, onTaken) =>
    given.map((plant): LoadOutcome => {
      const taken = plants.get(plant.id)?.plant
      if (taken && onTaken === 'keep') return isSamePlant(taken, plant) ? 'already-there' : 'id-taken'
      plants.set(plant.id, { plant, version: randomUUID() as string as PlantVersion })
      return taken ? 'replaced' : 'inserted'
    })

  return {
    load,
    async stage(onTaken) {
      const staged = new Map<PlantId, Plant>()
      return {
        async add(given) {
          return given.map((plant): LoadOutcome => {
            const taken = plants.get(plant.id)?.plant ?? staged.get(plant.id)
            if (taken && onTaken === 'keep') return isSamePlant(taken, plant) ? 'already-there' : 'id-taken'
            staged.set(plant.id, plant)
            return taken ? 'replaced' : 'inserted'
          })
        },
        async keep() {
          const taken = [...staged.keys()].find(id => plants.has(id))
          if (taken !== undefined && onTaken === 'keep') return { takenMeanwhile: taken }
          await load([...staged.values()], onTaken)
          return 'kept'
        },
        async [Symbol.asyncDispose]() {},
      }
    },
    async snapshot() {
      const ordered = [...plants.values()].map(({ plant }) => plant).sort((a, b) => (a.id < b.id ? -1 : 1))
      return {
        count: ordered.length,
        async *plants() {
          for (let at = 0; at < ordered.length; at += 100) yield ordered.slice(at, at + 100)
        },
        async [Symbol.asyncDispose]() {},
      }
    },
  }
}

/** An archive that is right but for what is put in its place. */
type Break = (right: PlantArchive, plants: PlantRepository) => Partial<PlantArchive>
type Staged = Awaited<ReturnType<PlantArchive['stage']>>

const reading =
  (change: (plants: readonly Plant[]) => readonly Plant[]): Break =>
  right => ({
    async snapshot() {
      const snapshot = await right.snapshot()
      return {
        ...snapshot,
        async *plants() {
          for await (const some of snapshot.plants()) yield change(some)
        },
      }
    },
  })
const staging =
  (change: (staged: Staged, right: PlantArchive, plants: PlantRepository) => Partial<Staged>): Break =>
  (right, plants) => ({
    async stage(onTaken) {
      const staged = await right.stage(onTaken)
      return { ...staged, ...change(staged, right, plants) }
    },
  })

const broken: Record<string, Break> = {
  'replaces whatever it is told': right => ({
    load: plants => right.load(plants, 'replace'),
    stage: () => right.stage('replace'),
  }),
  'keeps whatever it is told': right => ({
    load: plants => right.load(plants, 'keep'),
    stage: () => right.stage('keep'),
  }),
  'says inserted of everything': right => ({
    async load(plants, onTaken) {
      await right.load(plants, onTaken)
      return plants.map(() => 'inserted')
    },
  }),
  'takes the same plant for another': right => ({
    async load(plants, onTaken) {
      const outcomes = await right.load(plants, onTaken)
      return outcomes.map(outcome => (outcome === 'already-there' ? 'id-taken' : outcome))
    },
  }),
  'takes a plant for the same by its name': right => ({
    async load(plants, onTaken) {
      await using snapshot = await right.snapshot()
      const names = new Map<PlantId, string>()
      for await (const some of snapshot.plants()) for (const { id, name } of some) names.set(id, name)
      const outcomes = await right.load(plants, onTaken)
      return plants.map(({ id, name }, n) =>
        outcomes[n] === 'id-taken' && names.get(id) === name ? 'already-there' : (outcomes[n] as LoadOutcome),
      )
    },
  }),
  'stops at the first taken id': right => ({
    async load(plants, onTaken) {
      const outcomes: LoadOutcome[] = []
      for (const plant of plants) {
        const [outcome = 'id-taken'] = outcomes.includes('id-taken') ? [] : await right.load([plant], onTaken)
        outcomes.push(outcome)
      }
      return outcomes
    },
  }),
  'lets the first of equal ids win when it replaces': right => ({
    load: (plants, onTaken) => right.load(onTaken === 'replace' ? plants.toReversed() : plants, onTaken),
  }),
  'loads into a store of its own': () => {
    const { archive } = store()
    return { load: archive.load, snapshot: archive.snapshot }
  },
  'rounds ids': right => ({
    load: (plants, onTaken) =>
      right.load(
        plants.map(plant => ({ ...plant, id: BigInt.asIntN(64, BigInt(Number(plant.id))) as PlantId })),
        onTaken,
      ),
  }),
  'drops empty tags': reading(plants => plants.map(({ tag, ...plant }) => (tag ? { ...plant, tag } : plant))),
  'makes empty tags of none': reading(plants =>
    plants.map(plant => parsePlant({ ...plant, tag: plant.tag ?? '' })),
  ),
  'trims names': reading(plants => plants.map(plant => parsePlant({ ...plant, name: plant.name.trim() }))),
  'reads backwards': reading(plants => plants.toReversed()),
  'loses the last plant of each piece': reading(plants => plants.slice(0, -1)),
  'reads everything at once': right => ({
    async snapshot() {
      const snapshot = await right.snapshot()
      return {
        ...snapshot,
        async *plants() {
          const all: Plant[] = []
          for await (const some of snapshot.plants()) all.push(...some)
          yield all
        },
      }
    },
  }),
  'reads the store as it becomes': (right, plants) => ({
    async snapshot() {
      const snapshot = await right.snapshot()
      return {
        ...snapshot,
        async *plants() {
          for (let after: PlantId | undefined; ; ) {
            const some = await plants.page({ limit: 500, ...(after !== undefined && { after }) })
            if (some.length === 0) return
            yield some
            after = some.at(-1)?.id
          }
        },
      }
    },
  }),
  'has a plant when it is empty': right => ({
    async snapshot() {
      const snapshot = await right.snapshot()
      return snapshot.count > 0
        ? snapshot
        : {
            ...snapshot,
            async *plants() {
              yield [parsePlant({ id: 0n, name: '' })]
            },
          }
    },
  }),
  'counts nothing': right => ({
    async snapshot() {
      const snapshot = await right.snapshot()
      return { ...snapshot, count: 0 }
    },
  }),
  'shows what is staged': staging((_staged, right) => ({ add: plants => right.load(plants, 'keep') })),
  'keeps nothing of what is staged': staging(() => ({ keep: async () => 'kept' as const })),
  'keeps what is staged even when nobody says so': staging(staged => ({
    async [Symbol.asyncDispose]() {
      await staged.keep()
    },
  })),
  'looks into the store only when it keeps': right => ({
    async stage(onTaken) {
      const staged: Plant[] = []
      return {
        async add(plants) {
          staged.push(...plants)
          return plants.map(() => 'inserted' as const)
        },
        async keep() {
          await right.load(staged, onTaken)
          return 'kept'
        },
        async [Symbol.asyncDispose]() {},
      }
    },
  }),
  'keeps the rest when an id was taken meanwhile': right => ({
    async stage(onTaken) {
      const staged = await right.stage(onTaken)
      const added: Plant[] = []
      return {
        ...staged,
        async add(plants) {
          const outcomes = await staged.add(plants)
          added.push(...plants.filter((_, n) => outcomes[n] !== 'id-taken'))
          return outcomes
        },
        async keep() {
          const outcome = await staged.keep()
          if (outcome !== 'kept') await right.load(added, onTaken)
          return outcome
        },
      }
    },
  }),
  'does not tell that an id was taken meanwhile': staging(staged => ({
    async keep() {
      await staged.keep()
      return 'kept'
    },
  })),
}

async function caught(make: Break): Promise<string[]> {
  const failed: string[] = []
  for (const { name, run } of plantArchiveContract) {
    const { archive, plants } = store()
    await run({ archive: { ...archive, ...make(archive, plants) }, plants }).catch(() => failed.push(name))
  }
  return failed
}

describe('the contract catches an archive that', () => {
  test.each(Object.entries(broken))('%s', async (_, make) => {
    expect(await caught(make)).not.toEqual([])
  })
})

test('the contract fails nothing that only passes calls on', async () => {
  expect(await caught(right => ({ load: (plants, onTaken) => right.load(plants, onTaken) }))).toEqual([])
})

test('every case of the contract catches some broken archive', async () => {
  const useful = new Set<string>()
  for (const make of Object.values(broken)) for (const name of await caught(make)) useful.add(name)
  expect(plantArchiveContract.map(({ name }) => name).filter(name => !useful.has(name))).toEqual([])
})

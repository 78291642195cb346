import { isSamePlant, type Plant, textBytes } from '../plant.ts'
import type { LoadOutcome, PlantArchive } from '../plant-archive.ts'
import type { PlantId } from '../plant-id.ts'
import type { PlantRepository } from '../plant-repository.ts'

/** A repository that forgets with the process: for tests of what stands on the port. */
export function createMemoryPlantRepository(plants = new Map<PlantId, Plant>()): PlantRepository {
  return {
    async insert(plant) {
      if (plants.has(plant.id)) return 'id-taken'
      plants.set(plant.id, plant)
      return 'inserted'
    },
    async find(id) {
      return plants.get(id)
    },
    async page({ limit, after, tag, textBytesMax = Number.POSITIVE_INFINITY }) {
      const page = [...plants.values()]
        .filter(
          plant => (after === undefined || plant.id > after) && (tag === undefined || plant.tag === tag),
        )
        .sort((a, b) => (a.id < b.id ? -1 : 1))
        .slice(0, limit)
      let bytes = 0
      const end = page.findIndex(plant => {
        bytes += textBytes(plant)
        return bytes >= textBytesMax
      })
      return end === -1 ? page : page.slice(0, end + 1)
    },
    async save(plant) {
      plants.set(plant.id, plant)
    },
    async remove(id) {
      return plants.delete(id)
    },
  }
}

/** The archive over the plants of a {@link createMemoryPlantRepository}. */
export function createMemoryPlantArchive(plants: Map<PlantId, Plant>): PlantArchive {
  const load: PlantArchive['load'] = async (given, onTaken) =>
    given.map((plant): LoadOutcome => {
      const taken = plants.get(plant.id)
      if (taken && onTaken === 'keep') return isSamePlant(taken, plant) ? 'already-there' : 'id-taken'
      plants.set(plant.id, plant)
      return taken ? 'replaced' : 'inserted'
    })

  return {
    load,
    async stage(onTaken) {
      const staged = new Map<PlantId, Plant>()
      return {
        async add(given) {
          return given.map((plant): LoadOutcome => {
            const taken = plants.get(plant.id) ?? staged.get(plant.id)
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
      const ordered = [...plants.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
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

import { type Plant, type PlantId, textBytes } from '../plant.ts'
import type { PlantRepository } from '../plant-repository.ts'

/** A repository that forgets with the process: for tests of the port's users. */
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

import type { Plant } from '../plant.ts'
import type { PlantId } from '../plant-id.ts'
import type { PlantRepository } from '../plant-repository.ts'

/** A repository that forgets with the process: for tests of what stands on the port. */
export function createMemoryPlantRepository(): PlantRepository {
  const plants = new Map<PlantId, Plant>()
  return {
    async insert(plant) {
      if (plants.has(plant.id)) return 'id-taken'
      plants.set(plant.id, plant)
      return 'inserted'
    },
    async find(id) {
      return plants.get(id)
    },
    async page({ limit, after, tag }) {
      return [...plants.values()]
        .filter(
          plant => (after === undefined || plant.id > after) && (tag === undefined || plant.tag === tag),
        )
        .sort((a, b) => (a.id < b.id ? -1 : 1))
        .slice(0, limit)
    },
    async save(plant) {
      plants.set(plant.id, plant)
    },
    async remove(id) {
      return plants.delete(id)
    },
  }
}

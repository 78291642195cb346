import type { Plant, PlantId, VersionedPlant } from '../plants/plant.ts'
import type { PlantRepository } from '../plants/repository.ts'
import { textBytes } from '../values.ts'
import type { Version } from '../version.ts'

/** Returns a repository in memory, for tests. */
export function createMemoryPlantRepository(plants = new Map<PlantId, VersionedPlant>()): PlantRepository {
  let changes = 0
  const save = (plant: Plant) => {
    const version = `${++changes}` as Version
    plants.set(plant.id, { plant, version })
    return version
  }
  const insert = (plant: Plant) => {
    if (plants.has(plant.id)) return 'id-taken'
    save(plant)
    return 'inserted'
  }
  return {
    insert: async plant => insert(plant),
    insertAll: async all => all.map(insert),
    find: async id => plants.get(id),
    async page({ limit, after, tag, textBytesMax = Number.POSITIVE_INFINITY }) {
      const page = [...plants.values()]
        .map(({ plant }) => plant)
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
    save: async plant => save(plant),
    saveAll: async all => all.map(save),
    saveIf: async (plant, expected) => (plants.get(plant.id)?.version === expected ? save(plant) : undefined),
    remove: async id => plants.delete(id),
    removeIf: async (id, expected) => plants.get(id)?.version === expected && plants.delete(id),
  }
}

import type { Plant, PlantId, VersionedPlant } from '../plants/plant.ts'
import type { PlantPageQuery } from '../plants/query.ts'
import type { PlantRepository } from '../plants/repository.ts'
import type { Version } from '../version.ts'
import { pageOf } from './items.ts'

const everything = { limit: Number.POSITIVE_INFINITY, textBytesMax: Number.POSITIVE_INFINITY }

/** As the databases do, which know no other letters. */
const lower = (text: string) => text.replace(/[A-Z]/g, letter => letter.toLowerCase())

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
  const listOf = ({ tag }: PlantPageQuery) =>
    [...plants.values()].map(({ plant }) => plant).filter(plant => tag === undefined || plant.tag === tag)

  return {
    insert: async plant => insert(plant),
    insertAll: async all => all.map(insert),
    find: async id => plants.get(id),
    page: async query => pageOf(listOf(query), query),
    pageCounted: async query => ({
      plants: pageOf(listOf(query), query),
      total: listOf(query).slice(0, query.countMax).length,
    }),
    async search(query) {
      const rest = pageOf(listOf(query), { ...query, ...everything })
      const looked = rest.slice(0, query.lookAtMax)
      const matches = looked.filter(({ name }) => lower(name).includes(lower(query.name_contains)))
      const plants = pageOf(matches, query)
      const isCut = plants.length === query.limit || plants.length < matches.length
      const last = isCut ? plants.at(-1) : looked.at(-1)
      return last === undefined || last === rest.at(-1) ? { plants } : { plants, next: last.id }
    },
    save: async plant => save(plant),
    saveAll: async all => all.map(save),
    saveIf: async (plant, expected) => (plants.get(plant.id)?.version === expected ? save(plant) : undefined),
    remove: async id => plants.delete(id),
    removeIf: async (id, expected) => plants.get(id)?.version === expected && plants.delete(id),
  }
}

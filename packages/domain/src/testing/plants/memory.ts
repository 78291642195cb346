import type { Plant } from '../../plants/plant.ts'
import type { PlantPageQuery } from '../../plants/query.ts'
import type { PlantRepository } from '../../plants/repository.ts'
import { pageOf } from '../items.ts'
import { createMemoryItems } from '../memory.ts'

const everything = { limit: Number.POSITIVE_INFINITY, textBytesMax: Number.POSITIVE_INFINITY }

/** As the databases do, which know no other letters. */
const lower = (text: string) => text.replace(/[A-Z]/g, letter => letter.toLowerCase())

/** Returns a repository in memory, for tests. */
export function createMemoryPlantRepository(): PlantRepository {
  const { all, ...items } = createMemoryItems((plant: Plant, version) => ({ plant, version }))
  const listOf = ({ tag }: PlantPageQuery) => all().filter(plant => tag === undefined || plant.tag === tag)

  return {
    ...items,
    insertAll: plants => Promise.all(plants.map(items.insert)),
    saveAll: plants => Promise.all(plants.map(items.save)),
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
  }
}

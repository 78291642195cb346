import type { Plant } from '../../plants/plant.ts'
import type { PlantPageQuery } from '../../plants/query.ts'
import type { PlantRepository } from '../../plants/repository.ts'
import { createMemoryItems, pageOf } from '../memory.ts'

/** As the databases do, which know no other letters. */
const lower = (text: string) => text.replace(/[A-Z]/g, letter => letter.toLowerCase())

/** Returns a repository in memory, for tests. */
export function createMemoryPlantRepository(): PlantRepository {
  const { listOf, ...items } = createMemoryItems(
    (plant: Plant, version) => ({ plant, version }),
    (plant, { tag }: Pick<PlantPageQuery, 'tag'>) =>
      tag === undefined || plant.tag === tag,
  )
  return {
    ...items,
    insertAll: plants => Promise.all(plants.map(items.insert)),
    saveAll: plants => Promise.all(plants.map(items.save)),
    pageCounted: async query => ({
      plants: await items.page(query),
      total: listOf(query).slice(0, query.countMax).length,
    }),
    async search(query) {
      const { textBytesMax: _, ...list } = query
      const rest = pageOf(listOf(query), { ...list, limit: Number.POSITIVE_INFINITY })
      const looked = rest.slice(0, query.lookAtMax)
      const matches = looked.filter(({ name }) =>
        lower(name).includes(lower(query.name_contains)),
      )
      const plants = pageOf(matches, query)
      const isCut = plants.length === query.limit || plants.length < matches.length
      const last = isCut ? plants.at(-1) : looked.at(-1)
      return last === undefined || last === rest.at(-1)
        ? { plants }
        : { plants, next: last.id }
    },
  }
}

import type { Plant, PlantId, SavedPlant, VersionedPlant } from '../../plants/plant.ts'
import type { PlantPageQuery } from '../../plants/query.ts'
import type { PlantRepository } from '../../plants/repository.ts'
import { textBytes } from '../../values.ts'
import type { Version } from '../../version.ts'

/** Returns a repository in memory, for tests. */
export function createMemoryPlantRepository(): PlantRepository {
  const stored = new Map<PlantId, VersionedPlant>()
  let changes = 0

  function listOf({ tag }: PlantPageQuery): Plant[] {
    const plants = [...stored.values()].map(({ plant }) => plant)
    return plants.filter(plant => tag === undefined || plant.tag === tag)
  }

  function isExpected(id: PlantId, expected: Version | undefined): boolean {
    return stored.get(id)?.version === expected
  }

  function saveNow(plant: Plant): SavedPlant {
    // A version of this form is valid, and none is used twice.
    const version = `v${++changes}` as Version
    const created = !stored.has(plant.id)
    stored.set(plant.id, { plant, version })
    return { version, created }
  }

  function insertNow(plant: Plant): 'inserted' | 'id-taken' {
    if (stored.has(plant.id)) {
      return 'id-taken'
    }
    saveNow(plant)
    return 'inserted'
  }

  return {
    insert: async plant => insertNow(plant),
    insertAll: async plants => plants.map(insertNow),
    find: async id => stored.get(id),
    page: async query => pageOf(listOf(query), query),
    pageCounted: async query => ({
      plants: pageOf(listOf(query), query),
      total: Math.min(listOf(query).length, query.countMax),
    }),

    async search(query) {
      const { limit, lookAtMax, name_contains, textBytesMax = unlimited } = query
      const list = listOf(query)
      const rest = pageOf(list, { after: query.after, limit: unlimited })
      const window = rest.slice(0, lookAtMax)
      const matches = window.filter(plant =>
        lowerCase(plant.name).includes(lowerCase(name_contains)),
      )
      const plants = pageOf(matches, { limit, textBytesMax })

      const isFull = plants.length === limit || plants.length < matches.length
      const last = isFull ? plants.at(-1) : window.at(-1)
      const isLastPage = last === rest.at(-1)
      return last === undefined || isLastPage ? { plants } : { plants, next: last.id }
    },

    save: async plant => saveNow(plant),
    saveAll: async plants => plants.map(saveNow),
    async saveIf(plant, expected) {
      return isExpected(plant.id, expected) ? saveNow(plant).version : undefined
    },
    remove: async id => stored.delete(id),
    async removeIf(id, expected) {
      return isExpected(id, expected) && stored.delete(id)
    },
  }
}

const unlimited = Number.POSITIVE_INFINITY

interface Bounds {
  readonly limit: number
  readonly after?: PlantId | undefined
  readonly textBytesMax?: number
}

/** Returns a page of plants, in order of id. */
export function pageOf(
  plants: readonly Plant[],
  { limit, after, textBytesMax = unlimited }: Bounds,
): readonly Plant[] {
  const page = plants
    .filter(({ id }) => after === undefined || id > after)
    .sort((a, b) => (a.id < b.id ? -1 : 1))
    .slice(0, limit)

  let bytes = 0
  const end = page.findIndex(plant => {
    bytes += textBytes(plant)
    return bytes >= textBytesMax
  })
  return end === -1 ? page : page.slice(0, end + 1)
}

/** Changes A to Z only, as the databases do. */
function lowerCase(text: string): string {
  return text.replace(/[A-Z]/g, letter => letter.toLowerCase())
}

import { DomainError, type Fault, refusal } from './errors.ts'
import {
  isPlantId,
  type Plant,
  type PlantId,
  type PlantText,
  plantIdProblem,
  textBytes,
  textProblem,
} from './plant.ts'
import type { PlantPageQuery, PlantRepository } from './plant-repository.ts'

/** What a plant store does. Every change that resolves is durable. */
export interface PlantStore {
  /** @throws DomainError `id-taken`, with the plant of that id left as it was */
  create(plant: Plant): Promise<void>
  /** @throws DomainError `plant-not-found` */
  find(id: PlantId): Promise<Plant>
  /** A page that `textBytesMax` ends is shorter than its limit. It is the last one only without `next`. */
  list(query: PlantPageQuery): Promise<PlantPage>
  /** Creates or replaces; doing it twice is doing it once. */
  replace(plant: Plant): Promise<void>
  /** @throws DomainError `plant-not-found` */
  remove(id: PlantId): Promise<void>
}

export interface PlantPage {
  /** In ascending numeric order of the ids. */
  readonly plants: readonly Plant[]
  /** The `after` of the next page; absent on the last one. */
  readonly next?: PlantId
}

export const pageLimitMax = 1000
export const pageLimitDefault = 100

export function createPlantStore({ plants }: { plants: PlantRepository }): PlantStore {
  return {
    async create(plant) {
      if ((await plants.insert(plant)) === 'id-taken') {
        throw new DomainError('id-taken', `id ${plant.id} is taken by another plant`)
      }
    },
    async find(id) {
      return (await plants.find(id)) ?? notFound(id)
    },
    async list(query) {
      const { limit, textBytesMax = Number.POSITIVE_INFINITY } = query
      // With one more than the limit there is a next page: no counting.
      const found = await plants.page({ ...query, limit: limit + 1 })
      const page = found.slice(0, limit)
      const last = page.at(-1)
      const bytes = () => found.reduce((sum, plant) => sum + textBytes(plant), 0)
      const isCut = found.length > limit || bytes() >= textBytesMax
      return last !== undefined && isCut ? { plants: page, next: last.id } : { plants: page }
    },
    replace: plant => plants.save(plant),
    async remove(id) {
      if (!(await plants.remove(id))) notFound(id)
    },
  }
}

function notFound(id: PlantId): never {
  throw new DomainError('plant-not-found', `there is no plant with id ${id}`)
}

/**
 * @param input `limit`: a bigint from 1 to {@link pageLimitMax}, {@link pageLimitDefault} when missing;
 *   `after`: a plant id; `tag`: text; each optional.
 * @throws DomainError `invalid-plant-query`, with every fault at once
 */
export function parsePlantPageQuery(input: {
  limit?: unknown
  after?: unknown
  tag?: unknown
}): PlantPageQuery {
  const { limit = BigInt(pageLimitDefault), after, tag } = input
  const faults: Fault[] = []
  if (typeof limit !== 'bigint' || limit < 1n || limit > pageLimitMax) {
    faults.push({ field: 'limit', problem: `must be an integer from 1 to ${pageLimitMax}` })
  }
  if (after !== undefined && !isPlantId(after)) faults.push({ field: 'after', problem: plantIdProblem })
  const wrongTag = tag === undefined ? undefined : textProblem(tag)
  if (wrongTag !== undefined) faults.push({ field: 'tag', problem: wrongTag })
  if (faults.length > 0) throw refusal('invalid-plant-query', faults)

  return {
    limit: Number(limit),
    ...(after === undefined ? {} : { after: after as PlantId }),
    ...(tag === undefined ? {} : { tag: tag as PlantText }),
  }
}

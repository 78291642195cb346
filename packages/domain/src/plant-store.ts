import { DomainError, type Fault, refusal } from './errors.ts'
import {
  isPlantId,
  isSamePlant,
  type Plant,
  type PlantId,
  type PlantText,
  plantIdProblem,
  textBytes,
  textProblem,
} from './plant.ts'
import type { PlantPageQuery, PlantRepository } from './plant-repository.ts'
import { isMet, type PlantCondition, type PlantVersion, type VersionedPlant } from './plant-version.ts'

/** What a plant store does. Every change that resolves is durable. */
export interface PlantStore {
  /** @throws DomainError `id-taken`, with the plant of that id left as it was */
  create(plant: Plant): Promise<void>
  /**
   * Creates each of these plants unless its id is taken, and resolves to what became of each, in their order. When it
   * rejects, some may have been created; doing it again is safe.
   */
  createAll(all: readonly Plant[]): Promise<readonly CreateOutcome[]>
  /** @throws DomainError `plant-not-found`, `condition-failed` */
  find(id: PlantId, condition?: PlantCondition): Promise<VersionedPlant>
  /** A page that `textBytesMax` ends is shorter than its limit. It is the last one only without `next`. */
  list(query: PlantPageQuery): Promise<PlantPage>
  /**
   * Creates or replaces; doing it twice is doing it once. Returns the new version.
   *
   * @throws DomainError `condition-failed`
   */
  replace(plant: Plant, condition?: PlantCondition): Promise<PlantVersion>
  /** @throws DomainError `condition-failed`; `plant-not-found` when the condition allows that too */
  remove(id: PlantId, condition?: PlantCondition): Promise<void>
}

/** For a taken id: `already-there` when its plant is the same, to the letter. */
export type CreateOutcome = 'inserted' | 'already-there' | 'id-taken'

export interface PlantPage {
  /** In ascending numeric order of the ids. */
  readonly plants: readonly Plant[]
  /** The `after` of the next page; absent on the last one. */
  readonly next?: PlantId
}

export const pageLimitMax = 1000
export const pageLimitDefault = 100

export function createPlantStore({ plants }: { plants: PlantRepository }): PlantStore {
  const compareWithTaken = async (plant: Plant): Promise<CreateOutcome> => {
    for (let attempt = 1; attempt <= attemptsMax; attempt++) {
      const taken = await plants.find(plant.id)
      if (taken !== undefined) return isSamePlant(taken.plant, plant) ? 'already-there' : 'id-taken'
      // It was removed meanwhile.
      if ((await plants.insert(plant)) === 'inserted') return 'inserted'
    }
    return othersChange(plant.id)
  }

  return {
    async create(plant) {
      if ((await plants.insert(plant)) === 'id-taken') throw idTaken(plant.id)
    },
    async createAll(all) {
      const inserting = plants.insertAll?.(all) ?? Promise.all(all.map(plant => plants.insert(plant)))
      const outcomes: CreateOutcome[] = [...(await inserting)]
      const compare = async (plant: Plant, index: number) => {
        if (outcomes[index] === 'id-taken') outcomes[index] = await compareWithTaken(plant)
      }
      if (outcomes.includes('id-taken')) await Promise.all(all.map(compare))
      return outcomes
    },
    async find(id, condition = {}) {
      const found = (await plants.find(id)) ?? notFound(id)
      return isMet(condition, found.version) ? found : conditionFailed(id, found.version)
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
    replace(plant, condition) {
      if (condition === undefined) return plants.save(plant)
      return changeIf(plants, plant.id, condition, expected => plants.saveIf(plant, expected))
    },
    async remove(id, condition) {
      if (condition === undefined) {
        if (!(await plants.remove(id))) notFound(id)
        return
      }
      await changeIf(plants, id, condition, expected => plants.removeIf(id, expected ?? notFound(id)))
    },
  }
}

/** With each one, another change of the same plant has succeeded. */
const attemptsMax = 100

/**
 * Changes a plant in the very state on which the condition was judged, and judges it again when another change was
 * faster.
 *
 * @param change takes the version of that state and returns nothing truthy when the plant has another one
 */
async function changeIf<Result>(
  plants: PlantRepository,
  id: PlantId,
  condition: PlantCondition,
  change: (expected: PlantVersion | undefined) => Promise<Result>,
): Promise<NonNullable<Result>> {
  let version = onlyVersion(condition) ?? (await plants.find(id))?.version
  for (let attempt = 1; attempt <= attemptsMax; attempt++) {
    if (!isMet(condition, version)) conditionFailed(id, version)
    const changed = await change(version)
    if (changed) return changed
    version = (await plants.find(id))?.version
  }
  return othersChange(id)
}

function othersChange(id: PlantId): never {
  throw new DomainError('store-busy', `others change plant ${id} all the time`)
}

/** The one version that can meet a condition, where that is known without reading the plant. */
function onlyVersion({ matches }: PlantCondition): PlantVersion | undefined {
  return typeof matches === 'object' && matches.length === 1 ? matches[0] : undefined
}

function conditionFailed(id: PlantId, version: PlantVersion | undefined): never {
  const state = version === undefined ? `there is no plant with id ${id}` : `plant ${id} is in another state`
  throw new DomainError('condition-failed', `the condition does not hold: ${state}`)
}

/** The error of a plant whose id another one has. */
export function idTaken(id: PlantId): DomainError {
  return new DomainError('id-taken', `id ${id} is taken by another plant`)
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

import { DomainError, idTaken } from '../errors.ts'
import { readPage, type Total, totalMax } from '../page.ts'
import { isSame } from '../values.ts'
import { type Condition, isMet } from '../version.ts'
import {
  attemptsMax,
  changeIf,
  conditionFailed,
  keepsChanging,
  plantNotFound,
} from './change-if.ts'
import type { Plant, PlantId, SavedPlant, VersionedPlant } from './plant.ts'
import {
  type PlantListQuery,
  type PlantPage,
  type PlantPageQuery,
  searchedPlantsMax,
  searchedPlantsOfTagMax,
} from './query.ts'
import type { PlantRepository } from './repository.ts'

/** The use cases. A resolved change is durable. */
export interface PlantUseCases {
  /** @throws DomainError `id-taken`; the plant with this id stays unchanged */
  create(plant: Plant): Promise<void>
  /**
   * Creates each plant whose id is free. Resolves to the outcome of each, in order. If it
   * rejects, some plants may have been created, and it is safe to repeat.
   */
  createAll(plants: readonly Plant[]): Promise<readonly CreateOutcome[]>
  /** @throws DomainError `plant-not-found`, `condition-failed` */
  find(id: PlantId, condition?: Condition): Promise<VersionedPlant>
  /**
   * Resolves to a page. Only a page without `next` is the last: one that `textBytesMax`
   * ends is shorter than its limit, and one of a search may be empty.
   */
  list(query: PlantListQuery): Promise<PlantPage>
  /**
   * Creates or replaces, and resolves to the new version and which of both it did. A
   * repeat stores the same plant, in another version.
   *
   * @throws DomainError `condition-failed`
   */
  replace(plant: Plant, condition?: Condition): Promise<SavedPlant>
  /** Creates or replaces each plant, in order. Rejects like {@link createAll}. */
  replaceAll(plants: readonly Plant[]): Promise<readonly ReplaceOutcome[]>
  /**
   * @throws DomainError `condition-failed`, or `plant-not-found` whatever the condition
   */
  remove(id: PlantId, condition?: Condition): Promise<void>
}

/** `existing` if the plant with this id equals the new one exactly. */
export type CreateOutcome = 'inserted' | 'existing' | 'id-taken'

export type ReplaceOutcome = 'inserted' | 'replaced'

/** How many plants `createAll` compares with the stored ones at the same time. */
const comparisonsMax = 1_000

export function createPlantUseCases({
  plants: repository,
}: {
  readonly plants: PlantRepository
}): PlantUseCases {
  return {
    createAll: plants => createAllIn(repository, plants),

    // `then` instead of `await` saves 220 bytes a call, 2 % of a request's.
    create: plant =>
      repository.insert(plant).then(outcome => {
        if (outcome === 'id-taken') {
          throw idTaken(plant.id)
        }
      }),

    find: (id, condition = {}) =>
      repository.find(id).then(stored => {
        if (stored === undefined) {
          throw plantNotFound(id)
        }
        if (!isMet(condition, stored.version)) {
          throw conditionFailed(id, condition, stored.version)
        }
        return stored
      }),

    async list({ name_contains, count = false, ...query }) {
      if (name_contains !== undefined) {
        const isOfTag = query.tag !== undefined
        const lookAtMax = isOfTag ? searchedPlantsOfTagMax : searchedPlantsMax
        return repository.search({ ...query, name_contains, lookAtMax })
      }
      if (count) {
        return listCounted(repository, query)
      }
      const { items, ...next } = await readPage(query, bounds => repository.page(bounds))
      return { plants: items, ...next }
    },

    async replace(plant, condition) {
      if (condition === undefined) {
        return repository.save(plant)
      }
      return changeIf(repository, plant.id, condition, {
        change: async expected => {
          const version = await repository.saveIf(plant, expected)
          return version && { version, created: expected === undefined }
        },
        missing: () =>
          new DomainError('condition-failed', `there is no plant with id ${plant.id}`),
      })
    },

    async replaceAll(plants) {
      const saved = await repository.saveAll(plants)
      return saved.map(({ created }) => (created ? 'inserted' : 'replaced'))
    },

    async remove(id, condition) {
      if (condition === undefined) {
        const wasStored = await repository.remove(id)
        if (!wasStored) {
          throw plantNotFound(id)
        }
        return
      }
      await changeIf(repository, id, condition, {
        async change(expected) {
          if (expected === undefined) {
            throw plantNotFound(id)
          }
          return repository.removeIf(id, expected)
        },
        missing: () => plantNotFound(id),
      })
    },
  }
}

async function createAllIn(
  repository: PlantRepository,
  plants: readonly Plant[],
): Promise<readonly CreateOutcome[]> {
  const outcomes: CreateOutcome[] = [...(await repository.insertAll(plants))]
  const taken = [...plants.entries()].filter(([index]) => outcomes[index] === 'id-taken')
  for (let from = 0; from < taken.length; from += comparisonsMax) {
    const comparisons = taken
      .slice(from, from + comparisonsMax)
      .map(async ([index, plant]) => {
        outcomes[index] = await compareWithStored(repository, plant)
      })
    await Promise.all(comparisons)
  }
  return outcomes
}

/** Compares a plant with the one that has its id, and inserts it if there is none now. */
async function compareWithStored(
  repository: PlantRepository,
  plant: Plant,
): Promise<CreateOutcome> {
  for (let attempt = 1; attempt <= attemptsMax; attempt++) {
    const stored = await repository.find(plant.id)
    if (stored !== undefined) {
      return isSame(stored.plant, plant) ? 'existing' : 'id-taken'
    }
    // The plant was removed in between.
    const outcome = await repository.insert(plant)
    if (outcome === 'inserted') {
      return outcome
    }
  }
  throw keepsChanging(plant.id)
}

async function listCounted(
  repository: PlantRepository,
  query: PlantPageQuery,
): Promise<PlantPage> {
  let plantCount = 0
  const { items, ...next } = await readPage(query, async bounds => {
    const countMax = totalMax + 1
    const { plants, total } = await repository.pageCounted({ ...bounds, countMax })
    plantCount = total
    return plants
  })
  const total: Total = plantCount > totalMax ? `${totalMax}+` : plantCount
  return { plants: items, ...next, total }
}

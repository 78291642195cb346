import { readPage, totalMax } from '../page.ts'
import { isSame } from '../values.ts'
import type { Condition, Version } from '../version.ts'
import {
  attemptsMax,
  createVersionedUseCases,
  type VersionedUseCases,
} from '../versioned.ts'
import type { Plant, VersionedPlant } from './plant.ts'
import {
  type PlantListQuery,
  type PlantPage,
  type PlantPageQuery,
  searchedPlantsMax,
  searchedPlantsOfTagMax,
} from './query.ts'
import type { PlantRepository } from './repository.ts'

/** The use cases. A resolved change is durable. */
export interface PlantUseCases extends VersionedUseCases<Plant, VersionedPlant> {
  /**
   * Creates each plant whose id is free. Resolves to the outcome of each, in order. If it rejects, some plants may have
   * been created, and it is safe to repeat.
   */
  createAll(all: readonly Plant[]): Promise<readonly CreateOutcome[]>
  /**
   * Resolves to a page. Only a page without `next` is the last: one that `textBytesMax` cuts is shorter than its limit,
   * and one of a search may be empty.
   */
  list(query: PlantListQuery): Promise<PlantPage>
  /**
   * Creates or replaces, and resolves to the new version. It is idempotent.
   *
   * @throws DomainError `condition-failed`
   */
  replace(plant: Plant, condition?: Condition): Promise<Version>
  /** Creates or replaces each plant, in order. Rejects like {@link createAll}. */
  replaceAll(all: readonly Plant[]): Promise<readonly ('inserted' | 'replaced')[]>
}

/** `existing` if the plant with this id equals the new one exactly. */
export type CreateOutcome = 'inserted' | 'existing' | 'id-taken'

export function createPlantUseCases(given: {
  readonly plants: PlantRepository
}): PlantUseCases {
  const repository = given.plants
  const common = createVersionedUseCases('plant', 'plant-not-found', repository)

  const compareWithTaken = async (plant: Plant): Promise<CreateOutcome> => {
    for (let attempt = 1; attempt <= attemptsMax; attempt++) {
      const taken = await repository.find(plant.id)
      if (taken !== undefined) {
        return isSame(taken.plant, plant) ? 'existing' : 'id-taken'
      }
      // It was removed in between.
      if ((await repository.insert(plant)) === 'inserted') {
        return 'inserted'
      }
    }
    return common.keepsChanging(plant.id)
  }

  const listCounted = async (query: PlantPageQuery): Promise<PlantPage> => {
    let counted = 0
    const { items, ...next } = await readPage(query, async bounds => {
      const { plants, total } = await repository.pageCounted({
        ...bounds,
        countMax: totalMax + 1,
      })
      counted = total
      return plants
    })
    return {
      plants: items,
      ...next,
      total: counted > totalMax ? `${totalMax}+` : counted,
    }
  }

  return {
    ...common.useCases,
    async createAll(all) {
      const outcomes: CreateOutcome[] = [...(await repository.insertAll(all))]
      const compare = async (index: number) => {
        outcomes[index] = await compareWithTaken(all[index] as Plant)
      }
      const taken = [...all.keys()].filter(index => outcomes[index] === 'id-taken')
      for (let from = 0; from < taken.length; from += comparisonsMax) {
        await Promise.all(taken.slice(from, from + comparisonsMax).map(compare))
      }
      return outcomes
    },
    async list({ name_contains, count = false, ...query }) {
      if (name_contains !== undefined) {
        const lookAtMax =
          query.tag === undefined ? searchedPlantsMax : searchedPlantsOfTagMax
        return repository.search({ ...query, name_contains, lookAtMax })
      }
      if (count) {
        return listCounted(query)
      }
      const { items, ...next } = await readPage(query, repository.page)
      return { plants: items, ...next }
    },
    replace(plant, condition) {
      if (condition === undefined) {
        return repository.save(plant)
      }
      const save = (expected: Version | undefined) => repository.saveIf(plant, expected)
      return common.changeIf(plant.id, condition, save, 'condition-failed')
    },
    async replaceAll(all) {
      // Saving does not tell a new plant from a replaced one.
      const outcomes = await repository.insertAll(all)
      const taken = all.filter((_, index) => outcomes[index] === 'id-taken')
      if (taken.length > 0) {
        await repository.saveAll(taken)
      }
      return outcomes.map(outcome => (outcome === 'id-taken' ? 'replaced' : outcome))
    },
  }
}

/** Plants that `createAll` compares with the stored ones at the same time. */
const comparisonsMax = 1_000

import { DomainError, type DomainErrorCode, idTaken } from '../errors.ts'
import { readPage, totalMax } from '../page.ts'
import { type Condition, isMet, type Version } from '../version.ts'
import { isSamePlant, type Plant, type PlantId, type VersionedPlant } from './plant.ts'
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
   * Creates each plant whose id is free. Resolves to the outcome of each, in order. If it rejects, some plants may have
   * been created, and it is safe to repeat.
   */
  createAll(all: readonly Plant[], options?: AddOptions): Promise<readonly CreateOutcome[]>
  /** @throws DomainError `plant-not-found`, `condition-failed` */
  find(id: PlantId, condition?: Condition): Promise<VersionedPlant>
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
  replaceAll(all: readonly Plant[], options?: AddOptions): Promise<readonly ('inserted' | 'replaced')[]>
  /** @throws DomainError `condition-failed`, or `plant-not-found` whatever the condition */
  remove(id: PlantId, condition?: Condition): Promise<void>
}

/** How plants are added together. */
export interface AddOptions {
  /** Whether a store that announces added plants announces these: true by default. */
  readonly announce?: boolean
}

/** `existing` if the plant with this id equals the new one exactly. */
export type CreateOutcome = 'inserted' | 'existing' | 'id-taken'

export interface PlantUseCasesOptions {
  readonly plants: PlantRepository
  /** The same plants, but those that are added through it are not announced. By default `plants`. */
  readonly unannounced?: PlantRepository
}

export function createPlantUseCases({
  plants: repository,
  unannounced = repository,
}: PlantUseCasesOptions): PlantUseCases {
  const targetFor = ({ announce = true }: AddOptions = {}) => (announce ? repository : unannounced)

  const compareWithTaken = async (plant: Plant, target: PlantRepository): Promise<CreateOutcome> => {
    for (let attempt = 1; attempt <= attemptsMax; attempt++) {
      const taken = await repository.find(plant.id)
      if (taken !== undefined) return isSamePlant(taken.plant, plant) ? 'existing' : 'id-taken'
      // It was removed in between.
      if ((await target.insert(plant)) === 'inserted') return 'inserted'
    }
    return othersChange(plant.id)
  }

  /** Changes a plant only in the version that met the condition, and judges again if another change came first. */
  const changeIf = async <Result>(
    id: PlantId,
    { condition, missing, change }: ConditionalChange<Result>,
  ): Promise<NonNullable<Result>> => {
    let version = onlyVersion(condition) ?? (await repository.find(id))?.version
    for (let attempt = 1; attempt <= attemptsMax; attempt++) {
      if (!isMet(condition, version)) {
        if (version === undefined) notFound(id, missing)
        conditionFailed(id, condition, version)
      }
      const changed = await change(version)
      if (changed) return changed
      version = (await repository.find(id))?.version
    }
    return othersChange(id)
  }

  const listCounted = async (query: PlantPageQuery): Promise<PlantPage> => {
    let counted = 0
    const { items, ...next } = await readPage(query, async bounds => {
      const { plants, total } = await repository.pageCounted({ ...bounds, countMax: totalMax + 1 })
      counted = total
      return plants
    })
    return { plants: items, ...next, total: counted > totalMax ? `${totalMax}+` : counted }
  }

  return {
    create: plant =>
      repository.insert(plant).then(outcome => {
        if (outcome === 'id-taken') throw idTaken(plant.id)
      }),
    async createAll(all, options) {
      const target = targetFor(options)
      const outcomes: CreateOutcome[] = [...(await target.insertAll(all))]
      const compare = async (index: number) => {
        outcomes[index] = await compareWithTaken(all[index] as Plant, target)
      }
      const taken = [...all.keys()].filter(index => outcomes[index] === 'id-taken')
      for (let from = 0; from < taken.length; from += comparisonsMax)
        await Promise.all(taken.slice(from, from + comparisonsMax).map(compare))
      return outcomes
    },
    find: (id, condition = {}) =>
      repository.find(id).then(found => {
        if (found === undefined) return notFound(id)
        return isMet(condition, found.version) ? found : conditionFailed(id, condition, found.version)
      }),
    async list({ name_contains, count = false, ...query }) {
      if (name_contains !== undefined) {
        const lookAtMax = query.tag === undefined ? searchedPlantsMax : searchedPlantsOfTagMax
        return repository.search({ ...query, name_contains, lookAtMax })
      }
      if (count) return listCounted(query)
      const { items, ...next } = await readPage(query, repository.page)
      return { plants: items, ...next }
    },
    replace(plant, condition) {
      if (condition === undefined) return repository.save(plant)
      return changeIf(plant.id, {
        condition,
        missing: 'condition-failed',
        change: expected => repository.saveIf(plant, expected),
      })
    },
    async replaceAll(all, options) {
      // Saving does not tell a new plant from a replaced one.
      const target = targetFor(options)
      const outcomes = await target.insertAll(all)
      const taken = all.filter((_, index) => outcomes[index] === 'id-taken')
      if (taken.length > 0) await target.saveAll(taken)
      return outcomes.map(outcome => (outcome === 'id-taken' ? 'replaced' : outcome))
    },
    async remove(id, condition) {
      if (condition === undefined) {
        if (!(await repository.remove(id))) notFound(id)
        return
      }
      await changeIf(id, {
        condition,
        // As without a condition (RFC 9110, 13.2.1).
        missing: 'plant-not-found',
        change: expected => repository.removeIf(id, expected ?? notFound(id)),
      })
    },
  }
}

/** Plants that `createAll` compares with the stored ones at the same time. */
const comparisonsMax = 1_000

interface ConditionalChange<Result> {
  readonly condition: Condition
  /** The failure if the plant is missing and does not meet the condition. */
  readonly missing: DomainErrorCode
  /** Takes the version that met the condition. Resolves to a falsy value if the plant has another one by then. */
  change(expected: Version | undefined): Promise<Result>
}

/** Each attempt fails only because another change of the same plant succeeded. */
const attemptsMax = 100

function othersChange(id: PlantId): never {
  throw new DomainError('store-busy', `plant ${id} keeps changing: try again later`)
}

/** Returns the one version that can meet the condition, if that is known without reading the plant. */
function onlyVersion(condition: Condition): Version | undefined {
  const { matches } = condition
  const only = typeof matches === 'object' && matches.length === 1 ? matches[0] : undefined
  return isMet(condition, only) ? only : undefined
}

function conditionFailed(id: PlantId, { matches, differs }: Condition, version: Version): never {
  const isOther = !isMet({ matches }, version)
  const state = differs === 'any' ? 'already exists' : 'still has the excluded version'
  const problem = isOther ? 'does not have the expected version: read it again' : state
  throw new DomainError('condition-failed', `plant ${id} ${problem}`)
}

function notFound(id: PlantId, code: DomainErrorCode = 'plant-not-found'): never {
  throw new DomainError(code, `there is no plant with id ${id}`)
}

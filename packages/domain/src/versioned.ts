import { DomainError, type DomainErrorCode, idTaken } from './errors.ts'
import type { Identified } from './values.ts'
import { type Condition, isMet, type Version } from './version.ts'

/** What the repository of every entity with versions promises. */
export interface VersionedRepository<Item extends Identified, Found> {
  /** Never overwrites: of several inserts of one id, racing or not, exactly one is `'inserted'`. */
  insert(item: Item): Promise<'inserted' | 'id-taken'>
  find(id: Item['id']): Promise<Found | undefined>
  /** Resolves to whether the item existed. */
  remove(id: Item['id']): Promise<boolean>
  /** Removes the item if it has this version. Resolves to whether it did. */
  removeIf(id: Item['id'], expected: Version): Promise<boolean>
}

/** The use cases of every entity with versions. */
export interface VersionedUseCases<Item extends Identified, Found> {
  /** @throws DomainError `id-taken`; the item with this id stays unchanged */
  create(item: Item): Promise<void>
  /** @throws DomainError `…-not-found`, `condition-failed` */
  find(id: Item['id'], condition?: Condition): Promise<Found>
  /** @throws DomainError `condition-failed`, or `…-not-found` whatever the condition */
  remove(id: Item['id'], condition?: Condition): Promise<void>
}

/** Each attempt fails only because another change of the same item succeeded. */
export const attemptsMax = 100

/**
 * Returns the use cases that every entity with versions has, and what its others are made of.
 *
 * @param name of one item, in messages
 * @param missing the failure if there is no item with an id
 */
export function createVersionedUseCases<
  Item extends Identified,
  Found extends { readonly version: Version },
>(name: string, missing: DomainErrorCode, repository: VersionedRepository<Item, Found>) {
  const notFound = (id: Item['id'], code = missing): never => {
    throw new DomainError(code, `there is no ${name} with id ${id}`)
  }
  const keepsChanging = (id: Item['id']): never => {
    throw new DomainError('store-busy', `${name} ${id} keeps changing: try again later`)
  }
  const conditionFailed = (
    id: Item['id'],
    { matches, differs }: Condition,
    version: Version,
  ): never => {
    const isOther = !isMet({ matches }, version)
    const state = differs === 'any' ? 'already exists' : 'still has the excluded version'
    const problem = isOther ? 'does not have the expected version: read it again' : state
    throw new DomainError('condition-failed', `${name} ${id} ${problem}`)
  }

  /**
   * Changes an item only in the version that met the condition, and judges again if another change came first.
   *
   * @param change resolves to a falsy value if the item has another version by then
   * @param missingCode the failure if the item is missing and does not meet the condition
   */
  const changeIf = async <Result>(
    id: Item['id'],
    condition: Condition,
    change: (expected: Version | undefined) => Promise<Result>,
    missingCode = missing,
  ): Promise<NonNullable<Result>> => {
    let version = onlyVersion(condition) ?? (await repository.find(id))?.version
    for (let attempt = 1; attempt <= attemptsMax; attempt++) {
      if (!isMet(condition, version)) {
        return version === undefined
          ? notFound(id, missingCode)
          : conditionFailed(id, condition, version)
      }
      const changed = await change(version)
      if (changed) {
        return changed
      }
      version = (await repository.find(id))?.version
    }
    return keepsChanging(id)
  }

  const useCases: VersionedUseCases<Item, Found> = {
    create: item =>
      repository.insert(item).then(outcome => {
        if (outcome === 'id-taken') {
          throw idTaken(item.id)
        }
      }),
    find: (id, condition = {}) =>
      repository.find(id).then(found => {
        if (found === undefined) {
          return notFound(id)
        }
        return isMet(condition, found.version)
          ? found
          : conditionFailed(id, condition, found.version)
      }),
    async remove(id, condition) {
      if (condition !== undefined) {
        await changeIf(id, condition, async expected =>
          repository.removeIf(id, expected ?? notFound(id)),
        )
      } else if (!(await repository.remove(id))) {
        notFound(id)
      }
    },
  }
  return { changeIf, keepsChanging, useCases }
}

/** Returns the one version that can meet the condition, if that is known without reading the item. */
function onlyVersion(condition: Condition): Version | undefined {
  const { matches } = condition
  const only =
    typeof matches === 'object' && matches.length === 1 ? matches[0] : undefined
  return isMet(condition, only) ? only : undefined
}

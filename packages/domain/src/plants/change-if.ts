import { DomainError } from '../errors.ts'
import { type Condition, isMet, type Version } from '../version.ts'
import type { PlantId } from './plant.ts'
import type { PlantRepository } from './repository.ts'

/** Each attempt fails only because another change of the same plant succeeded. */
export const attemptsMax = 100

/** A change of one plant that depends on its version. */
interface ConditionalChange<Result> {
  /**
   * Makes the change if the plant has this version, or with `undefined` if it does not
   * exist. Resolves to a falsy value if another change came first.
   */
  change(expected: Version | undefined): Promise<Result>
  /** Returns the failure of a missing plant that does not meet the condition. */
  missing(): DomainError
}

/**
 * Changes a plant only in the version that met the condition, and judges again if another
 * change came first.
 *
 * @throws DomainError `condition-failed`, `store-busy`, or that of `missing`
 */
export async function changeIf<Result>(
  repository: PlantRepository,
  id: PlantId,
  condition: Condition,
  { change, missing }: ConditionalChange<Result>,
): Promise<NonNullable<Result>> {
  const storedVersion = async () => (await repository.find(id))?.version

  let version = onlyVersion(condition) ?? (await storedVersion())
  for (let attempt = 1; attempt <= attemptsMax; attempt++) {
    if (!isMet(condition, version)) {
      if (version === undefined) {
        throw missing()
      }
      throw conditionFailed(id, condition, version)
    }
    const result = await change(version)
    if (result) {
      return result
    }
    version = await storedVersion()
  }
  throw keepsChanging(id)
}

/**
 * Returns the one version that can meet the condition, if that is known without reading
 * the plant.
 */
function onlyVersion(condition: Condition) {
  const { matches } = condition
  if (typeof matches !== 'object' || matches.length !== 1) {
    return
  }
  const [version] = matches
  if (!isMet(condition, version)) {
    return
  }
  return version
}

export function plantNotFound(id: PlantId): DomainError {
  return new DomainError('plant-not-found', `there is no plant with id ${id}`)
}

export function keepsChanging(id: PlantId): DomainError {
  return new DomainError('store-busy', `plant ${id} keeps changing: try again later`)
}

/** Returns the failure of a stored plant that does not meet the condition. */
export function conditionFailed(
  id: PlantId,
  condition: Condition,
  version: Version,
): DomainError {
  const problem = conditionProblem(condition, version)
  return new DomainError('condition-failed', `plant ${id} ${problem}`)
}

function conditionProblem({ matches, differs }: Condition, version: Version) {
  if (!isMet({ matches }, version)) {
    return 'does not have the expected version: read it again'
  }
  if (differs === 'any') {
    return 'already exists'
  }
  return 'still has the excluded version'
}

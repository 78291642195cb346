import type { PlantRepository } from '../../plants/repository.ts'
import { changes } from './contract/changes.ts'
import { conditions } from './contract/conditions.ts'
import { pages } from './contract/pages.ts'
import { searches } from './contract/searches.ts'

/**
 * One promise of the port. `run` takes an empty repository and rejects if it breaks the
 * promise.
 */
export interface PlantRepositoryCase {
  readonly name: string
  run(repository: PlantRepository): Promise<void>
}

/** Every promise of the port, for any test runner. */
export const plantRepositoryContract: readonly PlantRepositoryCase[] = Object.entries({
  ...changes,
  ...conditions,
  ...pages,
  ...searches,
}).map(([name, run]) => ({ name, run }))

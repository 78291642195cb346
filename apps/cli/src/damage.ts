import { explain, isDamage } from '@plant-store/persistence'
import { Failure } from './failure.ts'

/** Throws the error, with advice if the store is damaged. */
export function advise(error: Error): never {
  if (!isDamage(error)) throw error
  const advice = 'restore a backup, or write what can be read with plant-store export --damaged'
  throw new Failure(`${explain(error)}: ${advice}`, undefined, { cause: error })
}

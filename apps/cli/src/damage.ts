import { explain, isDamage } from '@plant-store/persistence'
import { Failure } from './failure.ts'

/** Throws a failure again. That of a damaged store then says what to do. */
export function advise(error: Error): never {
  if (!isDamage(error)) throw error
  const advice = 'restore a backup, or write what can be read with plant-store export --damaged'
  throw new Failure(`${explain(error)}: ${advice}`, undefined, { cause: error })
}

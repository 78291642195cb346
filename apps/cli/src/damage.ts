import { explain, isDamage } from '@plant-store/persistence'
import { Failure } from './failure.ts'

/** Throws the error, with advice if the store is damaged. */
export function advise(error: Error): never {
  withAdvice(error, 'restore a backup, or write what can be read with plant-store export --damaged')
}

/** Like {@link advise}, for a backup: `export --damaged` would read the store. */
export function adviseOnBackup(error: Error): never {
  withAdvice(error, 'use an older backup')
}

function withAdvice(error: Error, advice: string): never {
  if (!isDamage(error)) throw error
  throw new Failure(`${explain(error)}: ${advice}`)
}

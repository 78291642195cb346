import { explain, fileReason, isDamage } from '@plant-store/persistence'

export const exitCodes = {
  done: 0,
  failed: 1,
  usage: 2,
  incomplete: 3,
  inUse: 4,
  interrupted: 130,
  outputClosed: 141,
} as const

/** An error whose message is complete in one line. */
export class Failure extends Error {
  readonly exitCode: number

  constructor(message: string, exitCode: number = exitCodes.failed) {
    super(message)
    this.exitCode = exitCode
  }
}

/** Returns a failure that says in plain words why the system refused a file. */
export function fileFailure(file: string, cause: unknown): Failure {
  return new Failure(`${file}: ${fileReason(cause)}`)
}

/** Returns a function that throws the error, with advice if the store is damaged. */
const advising = (advice: string) => (error: Error) => {
  throw isDamage(error) ? new Failure(`${explain(error)}: ${advice}`) : error
}

export const advise = advising(
  'restore a backup, or write what can be read with plant-store export --damaged',
)

/** For a backup: `export --damaged` would read the store. */
export const adviseOnBackup = advising('use an older backup')

import { fileReason } from '@plant-store/persistence'

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

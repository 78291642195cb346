/** What a script can tell by the exit code. */
export const exitCodes = {
  done: 0,
  failed: 1,
  usage: 2,
  rejects: 3,
  inUse: 4,
  interrupted: 130,
  outputClosed: 141,
} as const

/** A failure whose message says it all in one line, without a stack. */
export class Failure extends Error {
  override readonly name = 'Failure'
  readonly exitCode: number

  constructor(message: string, exitCode: number = exitCodes.failed, options?: ErrorOptions) {
    super(message, options)
    this.exitCode = exitCode
  }
}

import { isDamage, messageOf, reasonOf } from '@plant-store/engine'

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
export class CommandError extends Error {
  readonly exitCode: number

  constructor(message: string, exitCode: number = exitCodes.failed) {
    super(message)
    this.exitCode = exitCode
  }
}

/** Returns a failure that says in plain words why the system refused a file. */
export function fileError(file: string, cause: unknown): CommandError {
  return new CommandError(`${file}: ${reasonOf(cause)}`)
}

/**
 * Returns the result of the work on a file.
 *
 * @throws CommandError like {@link fileError}
 */
export function withFile<Result>(file: string, work: () => Result): Result {
  try {
    return work()
  } catch (error) {
    throw fileError(file, error)
  }
}

/** @throws the error, with advice if the store is damaged */
export function throwWithAdvice(error: unknown): never {
  if (isDamage(error)) {
    const advice =
      'restore a backup, or write what can be read with plant-store export --damaged'
    throw new CommandError(`${messageOf(error)}: ${advice}`)
  }
  throw error
}

const interruptingSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/**
 * Listens until its disposal. Its signal is aborted by the first SIGINT, SIGTERM or
 * SIGHUP, so that work can end cleanly. A second one ends the process.
 */
export class Interruption extends AbortController implements Disposable {
  constructor() {
    super()
    for (const name of interruptingSignals) {
      process.on(name, this.#interrupt)
    }
  }

  readonly #interrupt = () => {
    if (this.signal.aborted) {
      process.exit(exitCodes.interrupted)
    }
    this.abort(new CommandError('interrupted', exitCodes.interrupted))
  };

  [Symbol.dispose](): void {
    for (const name of interruptingSignals) {
      process.off(name, this.#interrupt)
    }
  }
}

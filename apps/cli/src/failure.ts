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

/** A failure whose message is all that there is to say: one line, no stack. */
export class Failure extends Error {
  override readonly name = 'Failure'
  readonly exitCode: number

  constructor(message: string, exitCode: number = exitCodes.failed, options?: ErrorOptions) {
    super(message, options)
    this.exitCode = exitCode
  }
}

/** @returns a signal for the first SIGINT, SIGTERM or SIGHUP, so that what is under way can be left whole; a second one ends the process */
export function onInterrupt(): AbortSignal {
  const controller = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(name, () => {
      if (controller.signal.aborted) process.exit(exitCodes.interrupted)
      controller.abort(new Failure('interrupted', exitCodes.interrupted))
    })
  }
  return controller.signal
}

/** What the system says about a file, in words. */
export function fileFailure(file: string, error: unknown): Failure {
  const { code = '', message } = error as NodeJS.ErrnoException
  return new Failure(`${file}: ${fileReasons[code] ?? message}`, exitCodes.failed, { cause: error })
}

const fileReasons: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EISDIR: 'it is a folder',
  ENOENT: 'there is no such file or folder',
  ENOSPC: 'the disk is full',
  ENOTDIR: 'a part of the path is not a folder',
  EROFS: 'the file system can only be read',
}

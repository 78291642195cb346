import { exitCodes, Failure } from '../failure.ts'

/**
 * Returns a signal that the first SIGINT, SIGTERM or SIGHUP aborts, so that work can end cleanly. A second one ends the
 * process.
 */
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

/** Called with each warning of the server that is no failure of the store. */
export type WarningListener = (warning: string, routine: string) => void

/**
 * How long the server's warnings of one kind are not repeated: some come with every
 * change.
 */
const repeatAfterMs = 60_000

/** Passes warnings of the server on, each kind at most once a minute. */
export function limitWarnings(
  onWarning: ((warning: string) => void) | undefined,
): WarningListener {
  const lastMs = new Map<string, number>()
  return (warning, routine) => {
    const nowMs = performance.now()
    const isRepeated = nowMs - (lastMs.get(routine) ?? -repeatAfterMs) < repeatAfterMs
    if (isRepeated) {
      return
    }
    lastMs.set(routine, nowMs)
    onWarning?.(warning)
  }
}

import type pg from 'pg'

/** A message of the server besides its answers. */
export type Notice = Pick<pg.DatabaseError, 'code' | 'routine'> & {
  readonly message?: string | undefined
}

/** Called with each warning of the server that is no failure of the store. */
export type WarningListener = (warning: string, routine: string) => void

/**
 * The routine of PostgreSQL that waits for the synchronous standbys before a commit is
 * answered.
 */
const standbyWait = 'SyncRepWaitForLSN'

/** Notices below a warning have this code. The sessions of a store leave them out. */
const successCode = '00000'

/** Returns whether a commit is not on the standby. */
export function isStandbyWarning({ routine }: Notice): boolean {
  return routine === standbyWait
}

/** Calls a listener with the warning of a notice, if it is one. */
export function reportWarning(notice: Notice, onWarning: WarningListener): void {
  const { code, routine = '', message = '' } = notice
  if (code !== successCode && !isStandbyWarning(notice)) {
    onWarning(message, routine)
  }
}

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

import type { Logger } from 'pino'

/**
 * Logs once, for all threads, that the store fails for a reason, and that it works again.
 */
export function createStoreLog(logger: Logger, store: string) {
  const failing = new Set<number>()
  /** Of this outage. */
  const loggedReasons = new Set<string>()
  let reason: string | undefined

  return {
    /**
     * @param thread the number of the thread that uses the store, 0 for the main thread
     * @param newReason why it fails, or `undefined` if it works again
     */
    note(thread: number, newReason: string | undefined) {
      if (newReason !== undefined) {
        failing.add(thread)
        reason = newReason
        if (!loggedReasons.has(reason)) {
          logger.error({ store, reason }, 'the store is failing')
        }
        loggedReasons.add(reason)
        return
      }
      failing.delete(thread)
      if (failing.size > 0) {
        return
      }
      reason = undefined
      loggedReasons.clear()
      logger.info({ store }, 'the store has recovered')
    },
    /**
     * @param reason why the WAL cannot be copied, or `undefined` once it can again.
     *   Changes succeed until it is full
     */
    noteCheckpoint(reason: string | undefined) {
      if (reason === undefined) {
        logger.info({ store }, 'the WAL can be copied to the database again')
      } else {
        logger.error({ store, reason }, 'the WAL cannot be copied to the database')
      }
    },
    /**
     * Logs a warning of PostgreSQL, such as one that comes before it stops to accept
     * changes.
     */
    noteWarning(warning: string) {
      logger.warn({ store, warning }, 'the database server warns')
    },
    /** Returns why the store is failing, or `undefined` while it works. */
    reason: () => reason,
  }
}

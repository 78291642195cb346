import type { Logger } from 'pino'

/** The first failure may be a symptom. Its line waits this long for the reason that lasts. */
const settleMs = 2_000

/** Logs once, for all threads, when and why the store begins to fail, and when it works again. */
export function createStoreLog(logger: Logger, store: string) {
  const failing = new Set<number>()
  let reason: string | undefined
  let logged: string | undefined
  let settling: NodeJS.Timeout | undefined

  const log = () => {
    clearTimeout(settling)
    settling = undefined
    if (reason === logged) return
    logged = reason
    if (reason === undefined) logger.info({ store }, 'the store has recovered')
    else logger.error({ store, reason }, 'the store is failing')
  }

  return {
    /**
     * @param thread the number of the thread that uses the store, 0 for the main thread
     * @param newReason why it fails, or `undefined` if it works again
     */
    note(thread: number, newReason: string | undefined) {
      if (newReason !== undefined) {
        failing.add(thread)
        reason = newReason
        settling ??= setTimeout(log, settleMs).unref()
        return
      }
      failing.delete(thread)
      if (failing.size > 0) return
      // A reason between the logged one and the recovery is a symptom of that, such as a server that starts.
      if (logged === undefined) log()
      reason = undefined
      log()
    },
    /** @param reason why the WAL cannot be copied, or `undefined` once it can again. Changes succeed until it is full */
    noteCheckpoint(reason: string | undefined) {
      if (reason === undefined) logger.info({ store }, 'the WAL can be copied to the database again')
      else logger.error({ store, reason }, 'the WAL cannot be copied to the database')
    },
    /** Returns why the store is failing, or `undefined` while it works. */
    reason: () => reason,
    [Symbol.dispose]: log,
  }
}

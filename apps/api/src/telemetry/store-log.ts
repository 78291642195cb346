import type { StoreState } from '@plant-store/persistence'
import type { Logger } from 'pino'

/** Logs once, for all threads, when and why the store begins to fail, and when it works again. */
export function createStoreLog(logger: Logger, store: string) {
  const failing = new Set<number>()
  let reason: string | undefined

  return {
    /** @param thread the number of the thread that uses the store, 0 for the main thread */
    note(thread: number, state: StoreState) {
      if (!state.ready) {
        failing.add(thread)
        if (state.reason !== reason) logger.error({ store, reason: state.reason }, 'the store is failing')
        reason = state.reason
        return
      }
      failing.delete(thread)
      if (failing.size > 0) return
      reason = undefined
      logger.info({ store }, 'the store has recovered')
    },
    /** Returns why the store is failing, or `undefined` while it works. */
    reason: () => reason,
  }
}

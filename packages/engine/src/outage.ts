import type { StoreError } from './errors.ts'
import type { StorageObserver } from './types.ts'

/** The interval of checks while the store fails. */
const checkEveryMs = 1_000

/**
 * Reports when a store begins to fail, and when it has worked for a second. So a store that fails now and then is
 * reported at most twice a second.
 *
 * @param check rejects with a StoreError while the store cannot be read or written
 */
export function watchOutages(
  check: () => Promise<void>,
  onFailureChange: StorageObserver['onFailureChange'] = () => {},
) {
  let reported: string | undefined
  let hasFailed = false
  let isEnded = false
  let checking: NodeJS.Timeout | undefined

  const reportIfNew = ({ message, cause }: StoreError) => {
    const reason = cause instanceof Error ? cause.message : message
    if (reason !== reported) {
      onFailureChange(reason)
    }
    reported = reason
  }
  const checkLater = () => {
    hasFailed = false
    checking = setTimeout(async () => {
      const failure = await check().then(
        () => undefined,
        (error: StoreError) => error,
      )
      if (isEnded) {
        return
      }
      // The first failure may have been a symptom. This one lasts.
      if (failure?.code === 'store-unavailable') {
        reportIfNew(failure)
      }
      if (hasFailed || failure !== undefined) {
        return checkLater()
      }
      reported = undefined
      checking = undefined
      onFailureChange()
    }, checkEveryMs).unref()
  }

  return {
    /** Reports an outage if the error is `store-unavailable`. */
    report(error: StoreError): void {
      if (error.code !== 'store-unavailable' || isEnded) {
        return
      }
      hasFailed = true
      if (checking !== undefined) {
        return
      }
      reportIfNew(error)
      checkLater()
    },
    /** To be called before the store is closed: later failures are not an outage. */
    end() {
      isEnded = true
      clearTimeout(checking)
    },
  }
}

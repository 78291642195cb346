import type { DomainError } from '@plant-store/domain'
import type { StorageObserver } from '../storage.ts'

/** The interval of checks while the store fails. */
const checkEveryMs = 1_000

/**
 * Reports when a store begins to fail, and when it has worked for a second. So a store that fails now and then is
 * reported at most twice a second.
 *
 * @param check rejects with a DomainError while the store cannot be read or written
 */
export function watchOutages(
  check: () => Promise<void>,
  onStateChange: StorageObserver['onStateChange'] = () => {},
) {
  let reported: string | undefined
  let hasFailed = false
  let isEnded = false
  let checking: NodeJS.Timeout | undefined

  const report = (reason: string) => {
    if (reason !== reported) onStateChange({ ready: false, reason })
    reported = reason
  }
  const checkLater = () => {
    hasFailed = false
    checking = setTimeout(async () => {
      const failure = await check().then(
        () => undefined,
        (error: DomainError) => error,
      )
      if (isEnded) return
      // The first failure may have been a symptom. This one lasts.
      if (failure?.code === 'store-unavailable') report(reasonOf(failure))
      if (hasFailed || failure !== undefined) return checkLater()
      reported = undefined
      checking = undefined
      onStateChange({ ready: true })
    }, checkEveryMs).unref()
  }

  return {
    /** Reports an outage if the error is `store-unavailable`, and throws the error. */
    reportAndThrow(error: DomainError): never {
      if (error.code !== 'store-unavailable' || isEnded) throw error
      hasFailed = true
      if (checking === undefined) {
        report(reasonOf(error))
        checkLater()
      }
      throw error
    },
    /** To be called before the store is closed: later failures are not an outage. */
    end() {
      isEnded = true
      clearTimeout(checking)
    },
  }
}

function reasonOf({ message, cause }: DomainError): string {
  return cause instanceof Error ? cause.message : message
}

import { messageOf, type StoreError } from './errors.ts'
import type { StorageObserver } from './types.ts'

/** How often a store that fails is checked. */
const checkEveryMs = 1_000

/**
 * Reports when a store begins to fail, and when it has worked for a second. A store that
 * fails now and then is therefore reported at most twice a second.
 *
 * An outage begins with a call that fails with `store-unavailable`. From then on the
 * store is checked each second, and a new reason is reported. The outage ends with a
 * check that succeeds, if no call has failed since the check before.
 */
export class OutageWatch {
  /** Rejects with a StoreError while the store cannot be read or written. */
  readonly #check
  readonly #onFailureChange

  /** The reason that was reported, while there is an outage. */
  #reason: string | undefined
  /** Whether a call has failed since the last check. */
  #hasFailed = false
  /** Whether the store is being closed. Failures are then expected, and not reported. */
  #isEnded = false
  #timer: NodeJS.Timeout | undefined

  constructor(
    check: () => Promise<void>,
    onFailureChange?: StorageObserver['onFailureChange'],
  ) {
    this.#check = check
    this.#onFailureChange = onFailureChange
  }

  /** Reports an outage if the error is `store-unavailable`. */
  report(error: StoreError) {
    if (error.code !== 'store-unavailable' || this.#isEnded) {
      return
    }
    this.#hasFailed = true
    if (this.#reason === undefined) {
      this.#reportReason(error)
      this.#checkLater()
    }
  }

  /** Ends the watch. It is called before the store is closed. */
  end() {
    this.#isEnded = true
    clearTimeout(this.#timer)
  }

  #reportReason({ cause, message }: StoreError) {
    const reason = messageOf(cause ?? message)
    if (reason !== this.#reason) {
      this.#reason = reason
      this.#onFailureChange?.(reason)
    }
  }

  #checkLater() {
    this.#hasFailed = false
    this.#timer = setTimeout(() => this.#checkNow(), checkEveryMs).unref()
  }

  async #checkNow() {
    // The check rejects with nothing else.
    const failure = await this.#check().catch((error: StoreError) => error)
    // The watch may have ended during the check.
    if (this.#isEnded) {
      return
    }
    if (failure === undefined && !this.#hasFailed) {
      this.#reason = undefined
      this.#onFailureChange?.()
      return
    }
    // The first failure may have been a symptom. That of a check lasts.
    if (failure?.code === 'store-unavailable') {
      this.#reportReason(failure)
    }
    this.#checkLater()
  }
}

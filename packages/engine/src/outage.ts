import { messageOf, type StoreError } from './errors.ts'
import type { StorageObserver } from './types.ts'

/** How often a store that fails is checked. */
const checkEveryMs = 1_000

/** The outage that was reported. */
type OutageState =
  | { readonly kind: 'none' }
  /** `hasFailed` says whether a call has failed since the last check. */
  | { readonly kind: 'reported'; readonly reason: string; readonly hasFailed: boolean }
  /** The store is being closed. Failures are expected, and not reported. */
  | { readonly kind: 'ended' }

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
  readonly #check: () => Promise<void>
  readonly #onFailureChange: NonNullable<StorageObserver['onFailureChange']>

  #state: OutageState = { kind: 'none' }
  #timer: NodeJS.Timeout | undefined

  constructor(
    check: () => Promise<void>,
    onFailureChange: StorageObserver['onFailureChange'] = () => {},
  ) {
    this.#check = check
    this.#onFailureChange = onFailureChange
  }

  /** Reports an outage if the error is `store-unavailable`. */
  report(error: StoreError): void {
    if (error.code !== 'store-unavailable' || this.#state.kind === 'ended') {
      return
    }
    if (this.#state.kind === 'reported') {
      this.#state = { ...this.#state, hasFailed: true }
      return
    }

    const reason = messageOf(error.cause ?? error.message)
    this.#state = { kind: 'reported', reason, hasFailed: false }
    this.#onFailureChange(reason)
    this.#checkLater()
  }

  /** Ends the watch. It is called before the store is closed. */
  end(): void {
    this.#state = { kind: 'ended' }
    clearTimeout(this.#timer)
  }

  #checkLater(): void {
    this.#timer = setTimeout(() => this.#checkNow(), checkEveryMs).unref()
  }

  async #checkNow(): Promise<void> {
    const failure = await this.#failureOfCheck()
    // The watch may have ended during the check.
    if (this.#state.kind !== 'reported') {
      return
    }

    const { reason, hasFailed } = this.#state
    if (failure === undefined && !hasFailed) {
      this.#state = { kind: 'none' }
      this.#onFailureChange()
      return
    }

    // The first failure may have been a symptom. That of a check lasts.
    const isOutage = failure?.code === 'store-unavailable'
    const lastingReason = isOutage ? messageOf(failure.cause ?? failure.message) : reason
    if (lastingReason !== reason) {
      this.#onFailureChange(lastingReason)
    }
    this.#state = { kind: 'reported', reason: lastingReason, hasFailed: false }
    this.#checkLater()
  }

  async #failureOfCheck(): Promise<StoreError | undefined> {
    try {
      await this.#check()
      return undefined
    } catch (error) {
      // The check rejects with nothing else.
      return error as StoreError
    }
  }
}

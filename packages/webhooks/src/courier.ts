import { setTimeout } from 'node:timers/promises'
import { isDomainError, textBytes } from '@plant-store/domain'
import { attempt, type SendPost } from './attempt.ts'
import { type CourierLimits, courierLimits } from './courier-limits.ts'
import { failedAttempt } from './failed-attempt.ts'
import type { Claim, ClaimOutcome, Outbox, WebhookRepository } from './ports.ts'
import type { WebhookId } from './webhook.ts'

/** A report for operators, sent after the store has answered the change behind it. */
export type CourierReport =
  | { readonly event: 'delivered'; readonly webhook: WebhookId; readonly count: number }
  /** A failed attempt. It is `given-up` if it was the last one of its delivery. */
  | {
      readonly event: 'attempt-failed' | 'given-up'
      readonly webhook: WebhookId
      readonly reason: string
      readonly plantId: string
    }
  | { readonly event: 'stopped'; readonly webhook: WebhookId; readonly reason: string }
  | { readonly event: 'removed'; readonly webhook: WebhookId }

export interface CourierOptions {
  readonly outbox: Outbox
  readonly webhooks: Pick<WebhookRepository, 'remove'>
  readonly post: SendPost
  readonly report: (report: CourierReport) => void
}

export interface CourierClock {
  /** Milliseconds of a clock that nobody sets. */
  readonly elapsed: () => number
  /** Resolves after this time, or once the signal is aborted. */
  readonly wait: (ms: number, signal: AbortSignal) => Promise<void>
}

const systemClock: CourierClock = {
  elapsed: () => performance.now(),
  wait: (ms, signal) => setTimeout(ms, undefined, { signal }).catch(() => {}),
}

export interface CourierSignals {
  /** Once it is aborted, the courier begins nothing more. */
  readonly stop: AbortSignal
  /** Once it is aborted, the courier ends what is in progress. */
  readonly abort: AbortSignal
}

/**
 * Claims the due deliveries of one webhook from the outbox, under a lease, and delivers
 * them in a round: one after another in order of creation. Then it settles the outcome,
 * which returns the lease. Rounds do not wait for each other, and a webhook has at most
 * one.
 *
 * - While the courier is **running**, it claims and begins rounds. If nothing is due, or
 *   too much is in progress, it waits: for a moment, or for the end of a round.
 * - After a stop it claims nothing more, and waits until every round has ended.
 * - After a defect it does the same, and then rejects. An outage of the store is no
 *   defect: the lease expires, and the deliveries are made again.
 *
 * No delivery begins later than its lease allows, so no other process makes it at the
 * same time.
 */
export class Courier {
  readonly #options: CourierOptions
  readonly #limits: CourierLimits
  readonly #clock: CourierClock
  /**
   * The defect that ended a round, if one did. `run` rejects with it once the other
   * rounds have ended.
   */
  #defect: unknown
  /** The rounds in progress. They never reject. */
  readonly #rounds = new Set<Promise<void>>()
  /** The UTF-8 bytes of the texts in the claims of all rounds in progress. */
  #heldTextBytes = 0
  /** When the deliveries are counted again. */
  #countAtMs = 0
  /** The deliveries of each webhook at the last count. */
  readonly #counted = new Map<WebhookId, number>()

  /** Tests set other limits and another clock. */
  constructor(
    options: CourierOptions,
    limits: CourierLimits = courierLimits,
    clock: CourierClock = systemClock,
  ) {
    this.#options = options
    this.#limits = limits
    this.#clock = clock
  }

  /**
   * Delivers until it is stopped, and resolves after the last round. To be called once.
   *
   * @throws Error of a defect, after the last round
   */
  async run(signals: CourierSignals): Promise<void> {
    this.#countAtMs = this.#clock.elapsed()
    while (this.#defect === undefined && !signals.stop.aborted) {
      await this.#limitOutboxIfDue().catch(passOverOutage)
      // The lease begins after the claim is asked for, however late the claim arrives.
      const askedAtMs = this.#clock.elapsed()
      const claim = await this.#claim()
      if (claim === undefined) {
        const pause = this.#clock.wait(this.#limits.pollMs, signals.stop)
        await Promise.race([pause, ...this.#rounds])
      } else {
        this.#beginRound(claim, askedAtMs, signals)
      }
    }

    await Promise.all(this.#rounds)
    if (this.#defect !== undefined) {
      throw this.#defect
    }
  }

  async #claim(): Promise<Claim | undefined> {
    const limits = this.#limits
    const isBusy =
      this.#rounds.size >= limits.webhooksMax ||
      this.#heldTextBytes >= limits.heldTextBytesMax
    if (isBusy) {
      return undefined
    }
    const claiming = this.#options.outbox.claim({
      // The last delivery of the claim ends in the first half of the lease.
      leaseMs: 2 * (limits.claimTimeMs + limits.deliveryTimeoutMs),
      rowsMax: limits.claimRowsMax,
      textBytesMax: limits.claimTextBytesMax,
    })
    return claiming.catch(passOverOutage)
  }

  #beginRound(claim: Claim, askedAtMs: number, signals: CourierSignals) {
    const textBytesOfClaim = claim.deliveries.reduce(
      (sum, { plant }) => sum + textBytes(plant),
      0,
    )
    this.#heldTextBytes += textBytesOfClaim
    const round = this.#deliver(claim, askedAtMs, signals)
      .then(outcome => this.#settle(claim, outcome))
      .catch(passOverOutage)
      .catch(defect => {
        this.#defect = defect
      })
      .then(() => {
        this.#heldTextBytes -= textBytesOfClaim
        this.#rounds.delete(round)
      })
    this.#rounds.add(round)
  }

  /**
   * Delivers one after another, in order of creation, until one fails. Resolves to `gone`
   * if the listener answered that it is.
   */
  async #deliver(
    claim: Claim,
    askedAtMs: number,
    { stop, abort }: CourierSignals,
  ): Promise<ClaimOutcome | 'gone'> {
    const limits = this.#limits
    const delivered: bigint[] = []
    for (const delivery of claim.deliveries) {
      const isInTime = this.#clock.elapsed() - askedAtMs < limits.claimTimeMs
      if (!isInTime || stop.aborted) {
        break
      }
      const outcome = await attempt(this.#options.post, claim, delivery, abort)
      if (outcome.kind === 'gone') {
        return 'gone'
      }
      if (outcome.kind === 'aborted') {
        break
      }
      if (outcome.kind === 'failed') {
        const failure = { claim, delivery, outcome, hasDelivered: delivered.length > 0 }
        return { delivered, failed: failedAttempt(failure, limits) }
      }
      delivered.push(delivery.id)
      if (outcome.isExcessive) {
        // Such a listener must not keep the thread busy.
        await this.#clock.wait(limits.excessivePauseMs, stop)
      }
    }
    return { delivered }
  }

  /**
   * Reports after the store has answered, because it may fail. It may also have kept
   * nothing: the lease may be lost, or the webhook may be removed already.
   */
  async #settle(claim: Claim, outcome: ClaimOutcome | 'gone') {
    const { outbox, webhooks, report } = this.#options
    const webhook = claim.webhook.id
    if (outcome === 'gone') {
      await webhooks.remove(webhook)
      report({ event: 'removed', webhook })
      return
    }

    await outbox.settle(claim, outcome)
    const { delivered, failed } = outcome
    if (delivered.length > 0) {
      report({ event: 'delivered', webhook, count: delivered.length })
    }
    if (failed === undefined) {
      return
    }

    const { id, reason, retryInMs, claimInMs } = failed
    const delivery = claim.deliveries.find(each => each.id === id)
    const isGivenUp = retryInMs === undefined
    const isStopped = claimInMs === undefined
    const event = isGivenUp ? 'given-up' : 'attempt-failed'
    report({ event, webhook, reason, plantId: `${delivery?.plant.id}` })
    if (isStopped) {
      report({ event: 'stopped', webhook, reason })
    }
  }

  /**
   * Stops webhooks with too many deliveries, if it is time to count them. One that was
   * just started again may still have too many, so only an increase stops it.
   */
  async #limitOutboxIfDue() {
    if (this.#clock.elapsed() < this.#countAtMs) {
      return
    }
    this.#countAtMs = this.#clock.elapsed() + this.#limits.countEveryMs
    const { outbox, report } = this.#options
    for (const { webhook, state, waiting, givenUp } of await outbox.figures()) {
      const rows = waiting + givenUp
      // The first count of a webhook is no increase.
      const hasIncreased = rows > (this.#counted.get(webhook) ?? rows)
      this.#counted.set(webhook, rows)
      const isFull = rows >= this.#limits.outboxRowsMax
      if (state !== 'stopped' && isFull && hasIncreased) {
        await outbox.stop(webhook)
        const reason = `${rows} deliveries wait or were given up`
        report({ event: 'stopped', webhook, reason })
      }
    }
  }
}

/**
 * Throws a defect again. An outage is a domain error, which the store reports itself.
 */
function passOverOutage(error: unknown): undefined {
  if (!isDomainError(error)) {
    throw error
  }
}

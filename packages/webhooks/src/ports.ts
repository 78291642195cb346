import type { VersionedPlant } from '@plant-store/domain'
import type { WebhookSecret } from './signature.ts'
import type { Webhook, WebhookEvent, WebhookId, WebhookState } from './webhook.ts'

/**
 * The port where webhooks are stored. A resolved change is durable and visible to every
 * process on the store. A change of an unknown webhook resolves to false.
 */
export interface WebhookRepository {
  /** Adds a webhook. Every change from now on that it wants is announced to it. */
  add(
    webhook: Pick<Webhook, 'id' | 'url' | 'allowsPrivate' | 'events' | 'createdAt'>,
    secret: WebhookSecret,
  ): Promise<void>
  /** Resolves to all webhooks in order of creation. */
  list(): Promise<readonly Webhook[]>
  /** Removes its pending deliveries too. */
  remove(id: WebhookId): Promise<boolean>
  /** Changes which events it wants from now on. What waits for it stays. */
  setEvents(id: WebhookId, events: readonly WebhookEvent[]): Promise<boolean>
  rotate(id: WebhookId, secret: WebhookSecret): Promise<boolean>
  /**
   * Makes every delivery that waits or was given up due at once, with no failed attempts.
   * Starts a stopped webhook.
   */
  retry(id: WebhookId): Promise<boolean>
}

/**
 * The port of pending announcements. A change of a plant and its deliveries, one for each
 * webhook that wants it, are stored in one transaction. Times are durations, as only the
 * store has a clock that all processes share.
 */
export interface Outbox {
  /**
   * Leases an active webhook that has due deliveries and no lease, the one leased the
   * longest time ago. A delivery is not due while an earlier one of its plant waits for
   * another attempt. Resolves to `undefined` if there is none.
   */
  claim(limits: ClaimLimits): Promise<Claim | undefined>
  /**
   * Records the outcome of a claim and returns the lease. Does nothing if the lease is no
   * longer the caller's.
   */
  settle(claim: Claim, outcome: ClaimOutcome): Promise<void>
  /**
   * Stops a webhook, until `retry` starts it. It misses what is changed meanwhile.
   */
  stop(webhook: WebhookId): Promise<void>
  figures(): Promise<readonly WebhookFigures[]>
  /**
   * Resolves to the deliveries of a webhook: first those given up, then those that wait,
   * each in order of creation.
   */
  deliveriesOf(webhook: WebhookId, rowsMax: number): Promise<readonly KeptDelivery[]>
}

export interface ClaimLimits {
  /** The time until another process may claim the webhook. */
  readonly leaseMs: number
  readonly rowsMax: number
  /** The last delivery is the one at which their texts reach this size in UTF-8. */
  readonly textBytesMax: number
}

export interface Claim {
  readonly webhook: Webhook
  /** Since the first of its failures, or 0 without one. */
  readonly failingForMs: number
  readonly secret: WebhookSecret
  /** The unique name of this lease. */
  readonly lease: string
  /** The due deliveries in order of creation, at least one. */
  readonly deliveries: readonly Delivery[]
}

/**
 * A change to announce to one webhook, with the plant as it was then: after the change,
 * or before its removal.
 */
export interface Delivery extends VersionedPlant {
  /** Ascending in order of creation. */
  readonly id: bigint
  readonly event: WebhookEvent
  readonly addedAt: Date
  /** The number of failed attempts. */
  readonly attempts: number
}

export interface ClaimOutcome {
  /** These are removed, and the webhook is no longer failing. */
  readonly delivered: readonly bigint[]
  /** The failed attempt after those. */
  readonly failed?: FailedAttempt
}

export interface FailedAttempt {
  /** The id of the delivery. */
  readonly id: bigint
  readonly reason: string
  /** Absent if the delivery is given up, and kept for the operator. */
  readonly retryInMs?: number | undefined
  /** The time until the webhook is claimed again. Absent if it is stopped. */
  readonly claimInMs?: number | undefined
}

export interface WebhookFigures {
  readonly webhook: WebhookId
  readonly waiting: number
  readonly givenUp: number
  readonly state: WebhookState
  /** The age of the oldest waiting delivery. */
  readonly oldestMs?: number
}

export interface KeptDelivery extends Delivery {
  readonly reason?: string
  /** Absent if it was given up. */
  readonly nextAttemptAt?: Date
}

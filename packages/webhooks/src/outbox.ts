import type { PlantAdded } from '@plant-store/domain'
import type { WebhookSecret } from './signature.ts'
import type { Webhook, WebhookId } from './webhook.ts'

/**
 * What is still to be announced: the port that a persistence adapter fills. A plant and its deliveries, one for each
 * webhook, are stored in one transaction. Times are spans, as only the store has a clock that all processes share.
 */
export interface Outbox {
  /**
   * Leases an active webhook for which something is due, and that no process has leased. Of several, the one that was
   * leased the longest time ago. Resolves to `undefined` where there is none.
   */
  claim(limits: ClaimLimits): Promise<Claim | undefined>
  /** Keeps what became of a claim, and gives the lease back. Does nothing once the lease is another's. */
  settle(claim: Claim, outcome: ClaimOutcome): Promise<void>
  /** Stops or starts announcing to a webhook. What is not announced is counted as missed. */
  setFull(webhook: WebhookId, isFull: boolean): Promise<void>
  /** Of every webhook. */
  figures(): Promise<readonly WebhookFigures[]>
  /** Deliveries of a webhook: those that were given up, then those that wait, each in the order as created. */
  log(webhook: WebhookId, rowsMax: number): Promise<readonly LoggedDelivery[]>
}

export interface ClaimLimits {
  /** After this, another process may claim the webhook. */
  readonly leaseMs: number
  /** Deliveries that are read. */
  readonly rowsMax: number
  /** The last of them is the one at which their texts reach this size in UTF-8. */
  readonly textBytesMax: number
}

export interface Claim {
  readonly webhook: Webhook
  /** Those that are valid, the newest first. */
  readonly secrets: readonly WebhookSecret[]
  /** Names this lease, and no other. */
  readonly lease: string
  /** What is due, in the order as created. At least one. */
  readonly deliveries: readonly Delivery[]
}

/** A plant to announce to one webhook. */
export interface Delivery {
  /** Ascending in the order as created. */
  readonly id: bigint
  readonly event: PlantAdded
  /** How many attempts have failed. */
  readonly attempts: number
}

export interface ClaimOutcome {
  /** These are forgotten, and the webhook is no longer failing. */
  readonly delivered: readonly bigint[]
  /** The attempt that failed, after those. */
  readonly failed?: {
    readonly id: bigint
    readonly reason: string
    /** Absent when it is given up: it is kept for the operator. */
    readonly retryInMs?: number
    /** Until then the webhook is left alone. Absent when it is paused. */
    readonly claimInMs?: number
  }
}

export interface WebhookFigures {
  readonly webhook: WebhookId
  readonly waiting: number
  readonly givenUp: number
  /** Whether nothing more is announced to it: `setFull`. */
  readonly isFull: boolean
  /** Not announced because it was full. */
  readonly missed: number
  /** How long the oldest of those that wait has waited. */
  readonly oldestMs?: number
}

export interface LoggedDelivery extends Delivery {
  /** Why the last attempt failed. */
  readonly reason?: string
  /** Absent when it was given up. */
  readonly nextAttemptAt?: Date
}

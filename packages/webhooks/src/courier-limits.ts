const second = 1_000
const minute = 60 * second
const hour = 60 * minute

export interface CourierLimits {
  /** The interval of polling when nothing is due. */
  readonly pollMs: number
  /** From resolving the host to the end of the answer, enforced by `post`. */
  readonly deliveryTimeoutMs: number
  /** A delivery of a claim begins at most this long after the claim was asked for. */
  readonly claimTimeMs: number
  readonly claimRowsMax: number
  readonly claimTextBytesMax: number
  /**
   * How many webhooks get deliveries at the same time, each independent of the others.
   */
  readonly webhooksMax: number
  /** The texts of all claims in progress. One claim can exceed it, by one plant. */
  readonly heldTextBytesMax: number
  /** The pause after each failed attempt. After the last one, a delivery is given up. */
  readonly retryDelaysMs: readonly number[]
  /** The longest pause of a failing webhook. Pauses begin at a second and double. */
  readonly webhookDelayMaxMs: number
  /** The longest pause that a listener can ask for by a Retry-After field. */
  readonly retryAfterMaxMs: number
  /** The pause after an answer that was cut because it is excessive. */
  readonly excessivePauseMs: number
  /** The time of failures after which a webhook is stopped. */
  readonly stopAfterMs: number
  /**
   * The deliveries of a webhook that wait or were given up. A webhook with more is
   * stopped if they increase.
   */
  readonly outboxRowsMax: number
  /** The interval of counting them. */
  readonly countEveryMs: number
}

export const courierLimits: CourierLimits = {
  pollMs: second / 2,
  deliveryTimeoutMs: 15 * second,
  claimTimeMs: 15 * second,
  claimRowsMax: 100,
  claimTextBytesMax: 64 * 1024,
  webhooksMax: 100,
  heldTextBytesMax: 16 * 1024 * 1024,
  // Three days in total.
  retryDelaysMs: [
    5 * second,
    5 * minute,
    30 * minute,
    2 * hour,
    5 * hour,
    10 * hour,
    14 * hour,
    18 * hour,
    24 * hour,
  ],
  webhookDelayMaxMs: 5 * minute,
  retryAfterMaxMs: 24 * hour,
  excessivePauseMs: second,
  stopAfterMs: 5 * 24 * hour,
  outboxRowsMax: 1_000_000,
  countEveryMs: 10 * second,
}

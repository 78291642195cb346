const second = 1_000
const minute = 60 * second
const hour = 60 * minute

export const courierLimits = {
  /** The interval of polling when nothing is due. */
  pollMs: second / 2,
  /** From resolving the host to the end of the answer, enforced by `post`. */
  deliveryTimeoutMs: 15 * second,
  /** A delivery of a claim begins at most this long after the claim was asked for. */
  claimTimeMs: 15 * second,
  claimRowsMax: 100,
  claimTextBytesMax: 64 * 1024,
  /**
   * How many webhooks get deliveries at the same time, each independent of the others.
   */
  webhooksMax: 100,
  /** The texts of all claims in progress. One claim can exceed it, by one plant. */
  heldTextBytesMax: 16 * 1024 * 1024,
  /**
   * The pause after each failed attempt, three days in total. After the last one, a
   * delivery is given up.
   */
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
  /** The longest pause of a failing webhook. Pauses begin at a second and double. */
  webhookDelayMaxMs: 5 * minute,
  /** The longest pause that a listener can ask for by a Retry-After field. */
  retryAfterMaxMs: 24 * hour,
  /** The pause after an answer that was cut because it is excessive. */
  excessivePauseMs: second,
  /** The time of failures after which a webhook is stopped. */
  stopAfterMs: 5 * 24 * hour,
  /**
   * The deliveries of a webhook that wait or were given up. A webhook with more is
   * stopped if they increase.
   */
  outboxRowsMax: 1_000_000,
  /** The interval of counting them. */
  countEveryMs: 10 * second,
}

export type CourierLimits = Readonly<typeof courierLimits>

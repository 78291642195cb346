import type { AttemptOutcome } from './attempt.ts'
import type { CourierLimits } from './courier-limits.ts'
import type { Claim, Delivery, FailedAttempt } from './ports.ts'

interface Failed {
  readonly claim: Claim
  readonly delivery: Delivery
  readonly outcome: Extract<AttemptOutcome, { kind: 'failed' }>
  /** Whether the listener received something before, in this round. */
  readonly hasDelivered: boolean
}

/**
 * Returns what the store keeps of a failed attempt: when the next ones are made, if any.
 */
export function failedAttempt(
  { claim, delivery, outcome, hasDelivered }: Failed,
  limits: CourierLimits,
): FailedAttempt {
  const { webhook, failingForMs } = claim
  const askedPauseMs = Math.min(outcome.retryAfterMs ?? 0, limits.retryAfterMaxMs)
  const pauseMs = (ownMs: number) => withJitter(Math.max(ownMs, askedPauseMs))

  const retryInMs = limits.retryDelaysMs[delivery.attempts]
  const failuresBefore = hasDelivered ? 0 : webhook.failures
  const claimInMs = Math.min(1_000 * 2 ** failuresBefore, limits.webhookDelayMaxMs)
  const isStopped = !hasDelivered && failingForMs >= limits.stopAfterMs
  return {
    id: delivery.id,
    reason: outcome.reason,
    retryInMs: retryInMs === undefined ? undefined : pauseMs(retryInMs),
    claimInMs: isStopped ? undefined : pauseMs(claimInMs),
  }
}

/** Adds up to a fifth, so that what failed together is not repeated together. */
function withJitter(ms: number) {
  return Math.round(ms * (1 + Math.random() / 5))
}

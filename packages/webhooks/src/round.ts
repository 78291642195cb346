import { type AttemptOutcome, attempt, type SendPost } from './attempt.ts'
import type { CourierLimits } from './courier-limits.ts'
import type { Claim, ClaimOutcome, Delivery, FailedAttempt } from './ports.ts'

export interface RoundOptions {
  readonly limits: CourierLimits
  readonly send: SendPost
  /** Returns whether another delivery of the claim may begin. */
  readonly mayContinue: () => boolean
  /**
   * Waits, so that a listener whose answers are excessive does not keep the thread busy.
   */
  readonly pause: () => Promise<void>
  readonly abort: AbortSignal
}

/**
 * Delivers one after another, in order of creation, until one fails. Resolves to `gone` if
 * the listener answered that it is.
 */
export async function deliverInOrder(
  claim: Claim,
  options: RoundOptions,
): Promise<ClaimOutcome | 'gone'> {
  const { limits, send, mayContinue, pause, abort } = options
  const delivered: bigint[] = []
  for (const delivery of claim.deliveries) {
    if (!mayContinue()) {
      break
    }
    const outcome = await attempt(send, claim, delivery, abort)
    if (outcome.kind === 'gone') {
      return 'gone'
    }
    if (outcome.kind === 'aborted') {
      break
    }
    if (outcome.kind === 'failed') {
      const failed = { claim, delivery, outcome, hasDelivered: delivered.length > 0 }
      return { delivered, failed: failedAttempt(failed, limits) }
    }
    delivered.push(delivery.id)
    if (outcome.isExcessive) {
      await pause()
    }
  }
  return { delivered }
}

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
function failedAttempt(
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
function withJitter(ms: number): number {
  return Math.round(ms * (1 + Math.random() / 5))
}

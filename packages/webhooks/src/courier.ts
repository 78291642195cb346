import { setTimeout } from 'node:timers/promises'
import { isDomainError, textBytes } from '@plant-store/domain'
import { writeJsonRecord } from '@plant-store/json'
import type {
  Claim,
  Delivery,
  FailedAttempt,
  Outbox,
  WebhookRepository,
} from './ports.ts'
import { signedHeaders } from './signature.ts'
import type { Webhook, WebhookId } from './webhook.ts'

const [second, minute, hour] = [1_000, 60_000, 3_600_000]

export const courierLimits = {
  /** The interval of polling when nothing is due. */
  pollMs: second / 2,
  /** From resolving the host to the end of the answer, enforced by `post`. */
  deliveryTimeoutMs: 15 * second,
  /** The last time in a claim to begin a delivery. */
  claimTimeMs: 15 * second,
  claimRowsMax: 100,
  claimTextBytesMax: 64 * 1024,
  /** Each has its own turn, so that none waits for one that hangs. */
  webhooksMax: 100,
  /** The texts of all claims under way. One claim can exceed it, by one plant. */
  heldTextBytesMax: 16 * 1024 * 1024,
  /** After each failed attempt but the last: three days in total. */
  retryDelaysMs: [
    5 * second,
    5 * minute,
    30 * minute,
    ...[2, 5, 10, 14, 18, 24].map(hours => hours * hour),
  ],
  /** The longest pause of a failing webhook. Pauses begin at a second and double. */
  webhookDelayMaxMs: 5 * minute,
  /** The time of failures after which a webhook is stopped. */
  stopAfterMs: 5 * 24 * hour,
  /** The deliveries of a webhook that wait or were given up. If they are more and increase, it is stopped. */
  outboxRowsMax: 1_000_000,
  /** The interval of counting them. */
  countEveryMs: 10 * second,
}
export type CourierLimits = Readonly<typeof courierLimits>

/** One attempt to deliver. The body is JSON. */
export interface Post extends Pick<Webhook, 'url' | 'allowsPrivate'> {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** Ends the attempt, which then neither succeeded nor failed. */
  readonly signal: AbortSignal
}

/** A report for operators, of what the store has kept. */
export type CourierReport =
  | { readonly event: 'delivered'; readonly webhook: WebhookId; readonly count: number }
  /** A failed attempt is one of the first two: `given-up` if it was the last of its delivery. */
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
  /** Resolves to the status of the answer. Rejects with an Error that says why there is none. */
  readonly post: (post: Post) => Promise<number>
  readonly report: (report: CourierReport) => void
}

export interface CourierClock {
  /** Milliseconds of a clock that nobody sets. */
  readonly elapsed: () => number
  /** Resolves after this time, or once the signal is aborted. */
  readonly wait: (ms: number, signal: AbortSignal) => Promise<void>
}

export const systemClock: CourierClock = {
  elapsed: () => performance.now(),
  wait: (ms, signal) => setTimeout(ms, undefined, { signal }).catch(() => {}),
}

export interface CourierSignals {
  /** Begins nothing more once it is aborted. */
  readonly stop: AbortSignal
  /** Ends what is in progress once it is aborted. */
  readonly abort: AbortSignal
}

/**
 * Returns a function that delivers until it is stopped, and then returns every lease. Deliveries of a webhook are made
 * one after another in order of creation. One that fails waits while the others continue. Webhooks do not wait for each
 * other.
 */
export const createCourier = (options: CourierOptions) =>
  createCourierWith(courierLimits, systemClock, options)

/** Does the same by other limits and another clock, for tests. */
export function createCourierWith(
  limits: CourierLimits,
  { elapsed, wait }: CourierClock,
  { outbox, webhooks, post, report }: CourierOptions,
): (signals: CourierSignals) => Promise<void> {
  const claimLimits = {
    leaseMs: 2 * (limits.claimTimeMs + limits.deliveryTimeoutMs),
    rowsMax: limits.claimRowsMax,
    textBytesMax: limits.claimTextBytesMax,
  }

  const deliver = async (
    claim: Claim,
    askedAt: number,
    { stop, abort }: CourierSignals,
  ) => {
    const webhook = claim.webhook.id
    const delivered: bigint[] = []
    let failed: FailedAttempt | undefined
    for (const delivery of claim.deliveries) {
      if (stop.aborted || elapsed() - askedAt >= limits.claimTimeMs) {
        break
      }
      const outcome = await attempt(claim, delivery, abort)
      if (outcome === 'received') {
        delivered.push(delivery.id)
      } else if (outcome === 'gone') {
        await webhooks.remove(webhook)
        return report({ event: 'removed', webhook })
      } else {
        if (outcome !== 'aborted') {
          failed = {
            id: delivery.id,
            ...outcome,
            ...delaysAfter(claim, delivery, delivered.length > 0),
          }
        }
        break
      }
    }
    await outbox.settle(claim, { delivered, ...(failed && { failed }) })
    // Only now, as the store may have refused the outcome.
    if (delivered.length > 0) {
      report({ event: 'delivered', webhook, count: delivered.length })
    }
    if (failed === undefined) {
      return
    }
    const { added } = claim.deliveries[delivered.length] as Delivery
    const { reason, retryInMs, claimInMs } = failed
    const event = retryInMs === undefined ? 'given-up' : 'attempt-failed'
    report({ event, webhook, reason, plantId: `${added.plant.id}` })
    if (claimInMs === undefined) {
      report({ event: 'stopped', webhook, reason })
    }
  }

  const attempt = async (
    { webhook, secret }: Claim,
    { added }: Delivery,
    signal: AbortSignal,
  ) => {
    const { url, allowsPrivate } = webhook
    const body = writeJsonRecord(added.plant)
    const headers = signedHeaders(
      { id: `added_${added.version}`, sentAtMs: Date.now(), body },
      secret,
    )
    try {
      const status = await post({ url, allowsPrivate, headers, body, signal })
      if (status >= 200 && status < 300) {
        return 'received'
      }
      return status === 410 ? 'gone' : { reason: `answered ${status}` }
    } catch (error) {
      return signal.aborted ? 'aborted' : { reason: shortReason(error as Error) }
    }
  }

  const delaysAfter = (
    { webhook, failingForMs }: Claim,
    { attempts }: Delivery,
    hasDelivered: boolean,
  ) => {
    const retryInMs = limits.retryDelaysMs[attempts]
    const isStopped = !hasDelivered && failingForMs >= limits.stopAfterMs
    const claimInMs = Math.min(
      second * 2 ** (hasDelivered ? 0 : webhook.failures),
      limits.webhookDelayMaxMs,
    )
    return {
      retryInMs: retryInMs === undefined ? undefined : withJitter(retryInMs),
      claimInMs: isStopped ? undefined : withJitter(claimInMs),
    }
  }

  /** The deliveries of each webhook at the last count: one that was started again has too many, but they decrease. */
  const counted = new Map<WebhookId, number>()
  const limitOutbox = async () => {
    for (const { webhook, state, waiting, givenUp } of await outbox.figures()) {
      const rows = waiting + givenUp
      const hasIncreased = rows > (counted.get(webhook) ?? rows)
      counted.set(webhook, rows)
      if (state === 'stopped' || rows < limits.outboxRowsMax || !hasIncreased) {
        continue
      }
      await outbox.stop(webhook)
      report({
        event: 'stopped',
        webhook,
        reason: `${rows} deliveries wait or were given up`,
      })
    }
  }

  return async signals => {
    const { stop } = signals
    const underWay = new Set<Promise<void>>()
    let heldTextBytes = 0
    let countAt = elapsed()
    while (!stop.aborted) {
      if (elapsed() >= countAt) {
        countAt = elapsed() + limits.countEveryMs
        await limitOutbox().catch(passOverOutage)
      }
      const isBusy =
        underWay.size >= limits.webhooksMax || heldTextBytes >= limits.heldTextBytesMax
      // The lease begins after this time, however late the claim arrives.
      const askedAt = elapsed()
      const claim = isBusy
        ? undefined
        : await outbox.claim(claimLimits).catch(passOverOutage)
      if (claim === undefined) {
        await Promise.race([wait(limits.pollMs, stop), ...underWay])
        continue
      }
      const bytes = claim.deliveries.reduce(
        (sum, { added }) => sum + textBytes(added.plant),
        0,
      )
      heldTextBytes += bytes
      const round = deliver(claim, askedAt, signals)
        .catch(passOverOutage)
        .finally(() => {
          heldTextBytes -= bytes
          underWay.delete(round)
        })
      underWay.add(round)
    }
    await Promise.all(underWay)
  }
}

const reasonLengthMax = 200

/** Returns a reason for logs and terminals. A listener can influence it. */
function shortReason({ message }: Error): string {
  return message.slice(0, reasonLengthMax).replaceAll(/\p{C}/gu, '?')
}

/** Adds up to a fifth, so that what failed together is not repeated together. */
function withJitter(ms: number): number {
  return Math.round(ms * (1 + Math.random() / 5))
}

/** The store reports its outages. A lease that was not returned expires. */
function passOverOutage(error: unknown): undefined {
  if (!isDomainError(error)) {
    throw error
  }
}

import { type PlantAdded, textBytes } from '@plant-store/domain'
import type {
  Claim,
  Outbox,
  Webhook,
  WebhookId,
  WebhookRepository,
  WebhookSecret,
} from '@plant-store/webhooks'

export interface MemoryOutbox extends Outbox {
  readonly webhooks: Omit<WebhookRepository, 'rotate'>
  /** Announces a plant, as storing it does. */
  announce(added: PlantAdded): void
}

interface Kept {
  webhook: Webhook
  secret: WebhookSecret
  nextClaimMs: number
  leasedAtMs: number
  leasedUntilMs: number
  lease: string
  missed: number
  rows: Row[]
}

interface Row {
  readonly id: bigint
  readonly added: PlantAdded
  attempts: number
  /** Absent if it was given up. */
  nextAttemptMs: number | undefined
  reason?: string
}

/** Returns an outbox in memory, on a clock that a test moves. */
export function createMemoryOutbox(now: () => number = Date.now): MemoryOutbox {
  const all = new Map<WebhookId, Kept>()
  let count = 0n
  const due = ({ rows }: Kept) =>
    rows.filter(({ nextAttemptMs = Number.POSITIVE_INFINITY }) => nextAttemptMs <= now())
  const restarted = ({ failingSince: _, ...webhook }: Webhook): Webhook => ({ ...webhook, failures: 0 })

  return {
    webhooks: {
      async add(webhook, secret) {
        all.set(webhook.id, {
          webhook: { ...webhook, state: 'active', failures: 0 },
          secret,
          nextClaimMs: 0,
          leasedAtMs: 0,
          leasedUntilMs: 0,
          lease: '',
          missed: 0,
          rows: [],
        })
      },
      list: async () => [...all.values()].map(({ webhook }) => webhook),
      remove: async id => all.delete(id),
      async retry(id) {
        const kept = all.get(id)
        if (kept === undefined) return false
        kept.webhook = { ...restarted(kept.webhook), state: 'active' }
        kept.nextClaimMs = 0
        for (const row of kept.rows) Object.assign(row, { attempts: 0, nextAttemptMs: now() })
        return true
      },
    },
    announce(added) {
      for (const kept of all.values()) {
        if (kept.webhook.state === 'stopped') kept.missed++
        else kept.rows.push({ id: ++count, added, attempts: 0, nextAttemptMs: now() })
      }
    },
    async claim({ leaseMs, rowsMax, textBytesMax }) {
      const [kept] = [...all.values()]
        .filter(each => each.webhook.state === 'active' && each.nextClaimMs <= now())
        .filter(each => each.leasedUntilMs <= now() && due(each).length > 0)
        .sort((a, b) => a.leasedAtMs - b.leasedAtMs)
      if (kept === undefined) return undefined
      Object.assign(kept, { lease: `${++count}`, leasedAtMs: now(), leasedUntilMs: now() + leaseMs })
      let bytes = 0
      const deliveries: Row[] = []
      for (const row of due(kept).slice(0, rowsMax)) {
        deliveries.push({ ...row })
        bytes += textBytes(row.added.plant)
        if (bytes >= textBytesMax) break
      }
      const { webhook, lease, secret } = kept
      const failingForMs = now() - (webhook.failingSince?.getTime() ?? now())
      return { webhook, failingForMs, secret, lease, deliveries }
    },
    async settle({ webhook, lease }: Claim, { delivered, failed }) {
      const kept = all.get(webhook.id)
      if (kept?.lease !== lease) return
      Object.assign(kept, { lease: '', leasedUntilMs: 0 })
      kept.rows = kept.rows.filter(({ id }) => !delivered.includes(id))
      if (delivered.length > 0) kept.webhook = restarted(kept.webhook)
      if (failed === undefined) return
      const { id, reason, retryInMs, claimInMs } = failed
      const { failures, failingSince = new Date(now()) } = kept.webhook
      kept.webhook = { ...kept.webhook, failures: failures + 1, failingSince }
      if (claimInMs === undefined) kept.webhook = { ...kept.webhook, state: 'stopped' }
      else kept.nextClaimMs = now() + claimInMs
      const row = kept.rows.find(each => each.id === id)
      if (row === undefined) return
      row.attempts++
      row.reason = reason
      row.nextAttemptMs = retryInMs === undefined ? undefined : now() + retryInMs
    },
    async stop(id) {
      const kept = all.get(id)
      if (kept !== undefined) kept.webhook = { ...kept.webhook, state: 'stopped' }
    },
    async figures() {
      return [...all].map(([id, { webhook, rows, missed }]) => {
        const waiting = rows.filter(({ nextAttemptMs }) => nextAttemptMs !== undefined)
        const [oldest] = waiting
        return {
          webhook: id,
          state: webhook.state,
          waiting: waiting.length,
          givenUp: rows.length - waiting.length,
          missed,
          ...(oldest && { oldestMs: now() - oldest.added.addedAt.getTime() }),
        }
      })
    },
    async deliveriesOf(id, rowsMax) {
      const rows = all.get(id)?.rows ?? []
      const isWaiting = (row: Row) => (row.nextAttemptMs === undefined ? 0 : 1)
      return [...rows]
        .sort((a, b) => isWaiting(a) - isWaiting(b))
        .slice(0, rowsMax)
        .map(({ nextAttemptMs, ...row }) => ({
          ...row,
          ...(nextAttemptMs !== undefined && { nextAttemptAt: new Date(nextAttemptMs) }),
        }))
    },
  }
}

import { DomainError, type PlantAdded, parsePlant } from '@plant-store/domain'
import {
  type Claim,
  mintSecret,
  type Outbox,
  type WebhookId,
  type WebhookState,
} from '@plant-store/webhooks'

interface Kept {
  state: WebhookState
  failures: number
  claimableAtMs: number
  lease: string
  rows: Row[]
}

interface Row {
  readonly id: bigint
  readonly added: PlantAdded
  attempts: number
  /** Infinite if it was given up. */
  dueAtMs: number
}

export const secret = mintSecret()

/** An outage, as a store rejects with. */
export const outage = () =>
  new DomainError('store-unavailable', 'the store cannot be used')

/**
 * Returns an outbox in memory, with active webhooks of these names, on a clock that a
 * test moves.
 */
export function createMemoryOutbox(now: () => number, names: readonly string[]) {
  const all = new Map(
    names.map((name): [WebhookId, Kept] => [
      name as WebhookId,
      { state: 'active', failures: 0, claimableAtMs: 0, lease: '', rows: [] },
    ]),
  )
  let leases = 0
  let deliveries = 0n
  const outbox: Outbox = {
    async claim({ leaseMs, rowsMax }): Promise<Claim | undefined> {
      for (const [id, kept] of all) {
        const due = kept.rows.filter(({ dueAtMs }) => dueAtMs <= now())
        if (kept.state === 'stopped' || kept.claimableAtMs > now() || due.length === 0) {
          continue
        }
        Object.assign(kept, { claimableAtMs: now() + leaseMs, lease: `${++leases}` })
        const { state, failures, lease } = kept
        const url = `https://${id}.example/`
        return {
          webhook: {
            id,
            url,
            allowsPrivate: false,
            createdAt: new Date(0),
            state,
            failures,
          },
          failingForMs: 0,
          secret,
          lease,
          deliveries: due.slice(0, rowsMax).map(row => ({ ...row })),
        }
      }
      return undefined
    },
    async settle({ webhook, lease }, { delivered, failed }) {
      const kept = all.get(webhook.id)
      if (kept?.lease !== lease) {
        return
      }
      Object.assign(kept, { claimableAtMs: now() + (failed?.claimInMs ?? 0), lease: '' })
      kept.rows = kept.rows.filter(({ id }) => !delivered.includes(id))
      if (delivered.length > 0) {
        kept.failures = 0
      }
      if (failed === undefined) {
        return
      }
      kept.failures++
      if (failed.claimInMs === undefined) {
        kept.state = 'stopped'
      }
      const row = kept.rows.find(({ id }) => id === failed.id) as Row
      row.attempts++
      row.dueAtMs = now() + (failed.retryInMs ?? Number.POSITIVE_INFINITY)
    },
    async stop(id) {
      const kept = all.get(id)
      if (kept !== undefined) {
        kept.state = 'stopped'
      }
    },
    async figures() {
      return [...all].map(([webhook, { state, rows }]) => {
        const givenUp = rows.filter(
          ({ dueAtMs }) => dueAtMs === Number.POSITIVE_INFINITY,
        ).length
        return { webhook, state, waiting: rows.length - givenUp, givenUp }
      })
    },
    deliveriesOf: () => Promise.reject(new Error('only operators ask for them')),
  }
  return {
    ...outbox,
    webhooks: { remove: async (id: WebhookId) => all.delete(id) },
    /** Announces plants with these ids, as storing them does. */
    announce(...ids: readonly bigint[]) {
      for (const id of ids) {
        const plant = parsePlant({ id, name: `plant ${id}` })
        const version = `${BigInt.asUintN(64, id)}` as PlantAdded['version']
        const added = { plant, version, addedAt: new Date(0) }
        for (const { rows } of all.values()) {
          rows.push({ id: deliveries++, added, attempts: 0, dueAtMs: 0 })
        }
      }
    },
  }
}

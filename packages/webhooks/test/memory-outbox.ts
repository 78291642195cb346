import assert from 'node:assert/strict'
import { DomainError, type PlantAdded, parsePlant } from '@plant-store/domain'
import {
  type Claim,
  type ClaimOutcome,
  mintSecret,
  type Outbox,
  type WebhookId,
  type WebhookState,
} from '@plant-store/webhooks'

/** The deliveries of one webhook. */
interface Queue {
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

/** Returns the error of a store that cannot be used. */
export function outage(): DomainError {
  return new DomainError('store-unavailable', 'the store cannot be used')
}

/**
 * Returns an outbox in memory, with active webhooks of these names, on a clock that a
 * test moves.
 */
export function createMemoryOutbox(now: () => number, names: readonly string[]) {
  const queues = new Map<WebhookId, Queue>()
  for (const name of names) {
    const id = name as WebhookId
    queues.set(id, {
      state: 'active',
      failures: 0,
      claimableAtMs: 0,
      lease: '',
      rows: [],
    })
  }
  let leases = 0
  let deliveries = 0n
  const outbox: Outbox = {
    async claim({ leaseMs, rowsMax }) {
      for (const [id, queue] of queues) {
        const due = queue.rows.filter(({ dueAtMs }) => dueAtMs <= now())
        const isClaimable = queue.state !== 'stopped' && queue.claimableAtMs <= now()
        if (isClaimable && due.length > 0) {
          queue.claimableAtMs = now() + leaseMs
          queue.lease = `${++leases}`
          return claimOf(id, queue, due.slice(0, rowsMax))
        }
      }
      return
    },
    async settle({ webhook, lease }, outcome) {
      const queue = queues.get(webhook.id)
      if (queue?.lease === lease) {
        queue.lease = ''
        settleQueue(queue, outcome, now())
      }
    },
    async stop(id) {
      const queue = queues.get(id)
      if (queue !== undefined) {
        queue.state = 'stopped'
      }
    },
    async figures() {
      return [...queues].map(([webhook, { state, rows }]) => {
        const givenUp = rows.filter(
          row => row.dueAtMs === Number.POSITIVE_INFINITY,
        ).length
        return { webhook, state, waiting: rows.length - givenUp, givenUp }
      })
    },
    deliveriesOf: () => Promise.reject(new Error('only operators ask for them')),
  }
  return {
    ...outbox,
    webhooks: { remove: async (id: WebhookId) => queues.delete(id) },
    /** Announces plants with these ids, as storing them does. */
    announce(...ids: readonly bigint[]) {
      for (const id of ids) {
        const added = addedPlant(id)
        for (const { rows } of queues.values()) {
          rows.push({ id: deliveries++, added, attempts: 0, dueAtMs: 0 })
        }
      }
    },
  }
}

function claimOf(id: WebhookId, queue: Queue, rows: readonly Row[]) {
  const { state, failures, lease } = queue
  const url = `https://${id}.example/`
  const createdAt = new Date(0)
  return {
    webhook: { id, url, allowsPrivate: false, createdAt, state, failures },
    failingForMs: 0,
    secret,
    lease,
    deliveries: rows.map(row => ({ ...row })),
  }
}

function settleQueue(queue: Queue, { delivered, failed }: ClaimOutcome, nowMs: number) {
  queue.claimableAtMs = nowMs + (failed?.claimInMs ?? 0)
  queue.rows = queue.rows.filter(({ id }) => !delivered.includes(id))
  if (delivered.length > 0) {
    queue.failures = 0
  }
  if (failed === undefined) {
    return
  }
  queue.failures++
  if (failed.claimInMs === undefined) {
    queue.state = 'stopped'
  }
  const row = queue.rows.find(({ id }) => id === failed.id)
  assert(row !== undefined, `the outbox has no delivery ${failed.id}`)
  row.attempts++
  row.dueAtMs = nowMs + (failed.retryInMs ?? Number.POSITIVE_INFINITY)
}

function addedPlant(id: bigint) {
  const plant = parsePlant({ id, name: `plant ${id}` })
  const version = `${BigInt.asUintN(64, id)}` as PlantAdded['version']
  return { plant, version, addedAt: new Date(0) }
}

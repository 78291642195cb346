import {
  type Plant,
  type PlantRepository,
  textBytes,
  type VersionedPlant,
} from '@plant-store/domain'
import { createMemoryPlantRepository } from '@plant-store/domain/testing'
import type {
  Claim,
  ClaimLimits,
  ClaimOutcome,
  Delivery,
  KeptDelivery,
  Outbox,
  WebhookRepository,
} from '../ports.ts'
import type { WebhookSecret } from '../signature.ts'
import type { Webhook, WebhookEvent, WebhookId } from '../webhook.ts'
import type { AnnouncingStore } from './contract.ts'

/** A webhook with its deliveries. */
interface Queue {
  webhook: Webhook
  secret: WebhookSecret
  claimableAtMs: number
  /** The number of its last lease. */
  lastLease: number
  leasedUntilMs: number
  lease: string
  rows: Row[]
}

interface Row extends Delivery {
  attempts: number
  /** 0 for a new delivery, `undefined` for one that was given up. */
  dueAtMs: number | undefined
  reason?: string
}

export interface MemoryStore extends AnnouncingStore {
  announce(event: WebhookEvent, changed: VersionedPlant): void
}

/** Returns a store in memory that announces, for tests, on a clock that they may move. */
export function createMemoryStore(now: () => number = Date.now): MemoryStore {
  const queues = new Map<WebhookId, Queue>()
  let lastId = 0n

  function announce(event: WebhookEvent, { plant, version }: VersionedPlant): void {
    for (const { webhook, rows } of queues.values()) {
      if (webhook.state === 'active' && webhook.events.includes(event)) {
        const addedAt = new Date(now())
        const id = ++lastId
        rows.push({ id, event, plant, version, addedAt, attempts: 0, dueAtMs: 0 })
      }
    }
  }

  const unannounced = createMemoryPlantRepository()
  const webhooks = createWebhooks(queues)
  return {
    plants: { ...announcing(unannounced, announce), unannounced },
    webhooks: { ...webhooks, outbox: createOutbox(queues, now) },
    announce,
  }
}

/** Returns the repository with an announcement after each change. */
function announcing(
  plants: PlantRepository,
  announce: MemoryStore['announce'],
): PlantRepository {
  // One change after another, so that what is announced is what the change stored.
  let last: Promise<unknown> = Promise.resolve()
  const change = <Result>(id: Plant['id'], make: () => Promise<Result>) => {
    const result = last.then(async () => {
      const before = await plants.find(id)
      const outcome = await make()
      const after = await plants.find(id)
      if (after !== undefined && after.version !== before?.version) {
        announce(before === undefined ? 'added' : 'changed', after)
      }
      if (after === undefined && before !== undefined) {
        announce('removed', before)
      }
      return outcome
    })
    last = result.catch(() => {})
    return result
  }
  const insert = (plant: Plant) => change(plant.id, () => plants.insert(plant))
  const save = (plant: Plant) => change(plant.id, () => plants.save(plant))
  return {
    ...plants,
    insert,
    insertAll: all => Promise.all(all.map(insert)),
    save,
    saveAll: all => Promise.all(all.map(save)),
    saveIf: (plant, expected) => change(plant.id, () => plants.saveIf(plant, expected)),
    remove: id => change(id, () => plants.remove(id)),
    removeIf: (id, expected) => change(id, () => plants.removeIf(id, expected)),
  }
}

function createWebhooks(queues: Map<WebhookId, Queue>): WebhookRepository {
  /** Resolves to whether there is such a webhook. */
  const change = async (id: WebhookId, make: (queue: Queue) => void) => {
    const queue = queues.get(id)
    if (queue !== undefined) {
      make(queue)
    }
    return queue !== undefined
  }
  return {
    async add(webhook, secret) {
      queues.set(webhook.id, {
        webhook: { ...webhook, state: 'active', failures: 0 },
        secret,
        claimableAtMs: 0,
        lastLease: 0,
        leasedUntilMs: 0,
        lease: '',
        rows: [],
      })
    },
    list: async () => [...queues.values()].map(({ webhook }) => webhook),
    remove: async id => queues.delete(id),
    setEvents: (id, events) =>
      change(id, queue => {
        queue.webhook = { ...queue.webhook, events }
      }),
    rotate: (id, secret) =>
      change(id, queue => {
        queue.secret = secret
      }),
    retry: id =>
      change(id, queue => {
        const { failingSince: _, ...webhook } = queue.webhook
        queue.webhook = { ...webhook, state: 'active', failures: 0 }
        queue.claimableAtMs = 0
        for (const row of queue.rows) {
          Object.assign(row, { attempts: 0, dueAtMs: 0 })
        }
      }),
  }
}

function createOutbox(queues: ReadonlyMap<WebhookId, Queue>, now: () => number): Outbox {
  let leases = 0
  return {
    async claim(limits) {
      const claimable = [...queues.values()]
        .filter(
          ({ webhook, claimableAtMs, leasedUntilMs }) =>
            webhook.state === 'active' && Math.max(claimableAtMs, leasedUntilMs) <= now(),
        )
        .sort((a, b) => a.lastLease - b.lastLease)
      for (const queue of claimable) {
        const rows = dueRows(queue, limits, now())
        if (rows.length > 0) {
          queue.lastLease = ++leases
          queue.lease = `${leases}`
          queue.leasedUntilMs = now() + limits.leaseMs
          return claimOf(queue, rows, now())
        }
      }
      return
    },
    async settle({ webhook, lease }, outcome) {
      const queue = queues.get(webhook.id)
      if (queue?.lease === lease) {
        settleQueue(queue, outcome, now())
      }
    },
    async stop(id) {
      const queue = queues.get(id)
      if (queue !== undefined) {
        queue.webhook = { ...queue.webhook, state: 'stopped' }
      }
    },
    async figures() {
      return [...queues.values()].map(({ webhook, rows }) => {
        const waiting = rows.filter(({ dueAtMs }) => dueAtMs !== undefined)
        const [oldest] = waiting
        return {
          webhook: webhook.id,
          state: webhook.state,
          waiting: waiting.length,
          givenUp: rows.length - waiting.length,
          ...(oldest && { oldestMs: now() - Number(oldest.addedAt) }),
        }
      })
    },
    async deliveriesOf(id, rowsMax) {
      const rows = queues.get(id)?.rows ?? []
      const givenUpFirst = rows.toSorted(
        (a, b) => Number(a.dueAtMs !== undefined) - Number(b.dueAtMs !== undefined),
      )
      return givenUpFirst.slice(0, rowsMax).map(toKeptDelivery)
    },
  }
}

function dueRows(
  { rows }: Queue,
  { rowsMax, textBytesMax }: ClaimLimits,
  nowMs: number,
): readonly Row[] {
  const isDue = ({ dueAtMs }: Row) => dueAtMs !== undefined && dueAtMs <= nowMs
  const heldUp = new Set<bigint>()
  const next = rows.filter(row => {
    if (row.dueAtMs !== undefined && !isDue(row)) {
      heldUp.add(row.plant.id)
    }
    return isDue(row) && !heldUp.has(row.plant.id)
  })
  const retriesFirst = next.sort((a, b) => (b.dueAtMs ?? 0) - (a.dueAtMs ?? 0))
  const chosen = retriesFirst.slice(0, rowsMax).sort((a, b) => Number(a.id - b.id))
  let bytesBefore = 0
  return chosen.filter(({ plant }) => {
    const isWithin = bytesBefore < textBytesMax
    bytesBefore += textBytes(plant)
    return isWithin
  })
}

function claimOf({ webhook, secret, lease }: Queue, rows: readonly Row[], nowMs: number) {
  const { failingSince } = webhook
  const claim: Claim = {
    webhook,
    failingForMs: failingSince === undefined ? 0 : nowMs - Number(failingSince),
    secret,
    lease,
    deliveries: rows.map(row => ({ ...row })),
  }
  return claim
}

function settleQueue(queue: Queue, outcome: ClaimOutcome, nowMs: number): void {
  const { delivered, failed } = outcome
  const { failingSince: before, ...webhook } = queue.webhook
  const failures = delivered.length > 0 ? 0 : webhook.failures
  const failingSince = delivered.length > 0 ? undefined : before
  queue.rows = queue.rows.filter(({ id }) => !delivered.includes(id))
  queue.leasedUntilMs = 0
  queue.claimableAtMs = 0
  if (failed === undefined) {
    queue.webhook = { ...webhook, failures, ...(failingSince && { failingSince }) }
    return
  }

  queue.webhook = {
    ...webhook,
    failures: failures + 1,
    failingSince: failingSince ?? new Date(nowMs),
    ...(failed.claimInMs === undefined && { state: 'stopped' }),
  }
  queue.claimableAtMs = nowMs + (failed.claimInMs ?? 0)
  const row = queue.rows.find(({ id }) => id === failed.id)
  if (row !== undefined) {
    const { reason, retryInMs } = failed
    const dueAtMs = retryInMs === undefined ? undefined : nowMs + retryInMs
    Object.assign(row, { attempts: row.attempts + 1, reason, dueAtMs })
  }
}

function toKeptDelivery({ dueAtMs, ...row }: Row): KeptDelivery {
  if (dueAtMs === undefined) {
    return row
  }
  return { ...row, nextAttemptAt: new Date(dueAtMs || Number(row.addedAt)) }
}

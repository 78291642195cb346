import type { Change, Runner } from '@plant-store/engine'
import type {
  Claim,
  ClaimLimits,
  ClaimOutcome,
  Delivery,
  Outbox,
  Webhook,
  WebhookEvent,
  WebhookRepository,
} from '@plant-store/webhooks'
import { milliseconds, toDate } from '../dates.ts'
import { toPlant } from '../plants/tables.ts'
import { toVersion } from '../versions.ts'
import type { WebhookStatements } from './statements.ts'
import type { DeliveryRow, KnownWebhookRow } from './tables.ts'

export function createWebhookRepository(
  { bind, submit, submitAll, read }: Runner,
  statements: WebhookStatements,
): WebhookRepository {
  /**
   * A change of a plant that is being made may not have read the webhook, and would
   * appear later without being announced.
   */
  function submitAfterPlants(change: Change) {
    return submitAll([bind(statements.awaitChanges, {}), change])
  }

  return {
    async add({ id, url, allowsPrivate, events, createdAt }, secret) {
      const row = {
        id,
        url,
        allows_private: BigInt(allowsPrivate),
        created_at: milliseconds(createdAt),
        secret,
        events: events.join(' '),
      }
      await submitAfterPlants(bind(statements.insert, row))
    },

    async list() {
      const rows = await read(statements.all, {})
      return rows.map(toWebhook)
    },

    async remove(id) {
      // A stopped webhook gets no new deliveries, unless somebody starts it meanwhile.
      while ((await submit(statements.stop, { id })) > 0) {
        const removedRows = await submit(statements.removeDeliveries, { id })
        if (removedRows === 0) {
          return (await submit(statements.remove, { id })) > 0
        }
      }
      return false
    },

    async setEvents(id, events) {
      const set = bind(statements.setEvents, { id, events: events.join(' ') })
      const [, changedRows = 0] = await submitAfterPlants(set)
      return changedRows > 0
    },

    async rotate(id, secret) {
      return (await submit(statements.rotate, { id, secret })) > 0
    },

    async retry(id) {
      while ((await submit(statements.retryDeliveries, { id })) > 0) {
        // There may be more.
      }
      return (await submit(statements.retry, { id })) > 0
    },
  }
}

export function createOutbox(runner: Runner, statements: WebhookStatements): Outbox {
  const { bind, submit, submitAll, read } = runner
  return {
    claim: limits => claimIn(runner, statements, limits),

    async settle({ webhook, lease }, outcome) {
      const { delivered, failed } = outcome
      const changes: Change[] = delivered.map(position =>
        bind(statements.removeDelivery, { position, lease }),
      )
      if (failed !== undefined) {
        const { id: position, reason, retryInMs } = failed
        const retry = retryInMs === undefined ? null : BigInt(retryInMs)
        const failure = { position, lease, reason, retryInMs: retry }
        changes.push(bind(statements.failDelivery, failure))
      }
      const release = { id: webhook.id, lease, ...releaseOf(outcome) }
      changes.push(bind(statements.release, release))
      await submitAll(changes)
    },

    async stop(id) {
      await submit(statements.stop, { id })
    },

    async figures() {
      const rows = await read(statements.figures, {})
      return rows.map(({ webhook, is_stopped, waiting, given_up, oldest_ms }) => ({
        webhook,
        state: stateOf(is_stopped),
        waiting: Number(waiting),
        givenUp: Number(given_up),
        ...(oldest_ms !== null && { oldestMs: Number(oldest_ms) }),
      }))
    },

    async deliveriesOf(id, rowsMax) {
      const rows = await read(statements.kept, { id, rowsMax })
      return rows.map(row => ({
        ...toDelivery(row),
        ...(row.reason !== null && { reason: row.reason }),
        // A new delivery is due from when it was added.
        ...(row.next_at !== null && {
          nextAttemptAt: toDate(row.next_at || row.added_at),
        }),
      }))
    },
  }
}

async function claimIn(
  { submit, read }: Runner,
  statements: WebhookStatements,
  { leaseMs, rowsMax, textBytesMax }: ClaimLimits,
): Promise<Claim | undefined> {
  const webhooks = await read(statements.due, {})
  for (const row of webhooks) {
    const { id, lease: lastLease, secret, failing_for_ms } = row
    const lease = crypto.randomUUID()
    const newLease = { id, lastLease, lease, leaseMs: BigInt(leaseMs) }
    const leasedRows = await submit(statements.lease, newLease)
    if (leasedRows === 0) {
      // Another courier was faster.
      continue
    }

    const due = await read(statements.dueDeliveries, { id, rowsMax, textBytesMax })
    if (due.length > 0) {
      return {
        webhook: toWebhook(row),
        failingForMs: Number(failing_for_ms),
        secret,
        lease,
        deliveries: due.map(toDelivery),
      }
    }
    const release = { id, lease, ...releaseOf({ delivered: [] }) }
    await submit(statements.release, release)
  }
  return undefined
}

/** Returns what the statement that ends a lease says about its outcome. */
function releaseOf({ delivered, failed }: ClaimOutcome) {
  const willStop = failed !== undefined && failed.claimInMs === undefined
  return {
    delivered: BigInt(delivered.length > 0),
    failed: BigInt(failed !== undefined),
    stops: BigInt(willStop),
    claimInMs: BigInt(failed?.claimInMs ?? 0),
  }
}

function toWebhook(row: KnownWebhookRow): Webhook {
  return {
    id: row.id,
    url: row.url,
    allowsPrivate: row.allows_private === 1n,
    // Events were checked before they were written.
    events: row.events.split(' ') as WebhookEvent[],
    createdAt: toDate(row.created_at),
    state: stateOf(row.is_stopped),
    failures: Number(row.failures),
    ...(row.failing_since !== null && { failingSince: toDate(row.failing_since) }),
  }
}

function toDelivery(row: DeliveryRow): Delivery {
  return {
    id: row.position,
    event: row.event,
    plant: toPlant(row),
    version: toVersion(row.version),
    addedAt: toDate(row.added_at),
    attempts: Number(row.attempts),
  }
}

function stateOf(isStopped: bigint) {
  return isStopped === 1n ? 'stopped' : 'active'
}

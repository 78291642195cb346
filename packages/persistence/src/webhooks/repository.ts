import type { Change, Runner } from '@plant-store/engine'
import type {
  ClaimOutcome,
  Delivery,
  Outbox,
  Webhook,
  WebhookId,
  WebhookRepository,
  WebhookState,
} from '@plant-store/webhooks'
import type { Selectable } from 'kysely'
import { milliseconds, toDate } from '../dates.ts'
import { toPlant } from '../plants/tables.ts'
import { toVersion } from '../versions.ts'
import type { WebhookStatements } from './statements.ts'
import type { DeliveryRow, WebhookRow } from './tables.ts'

export function createWebhookRepository(
  { bind, submit, submitAll, read }: Runner,
  statements: WebhookStatements,
): WebhookRepository {
  const { stop, removeDeliveries, remove, retryDeliveries } = statements
  const affects = async (affected: Promise<number>) => (await affected) > 0
  return {
    async add({ id, url, allowsPrivate, createdAt }, secret) {
      const row = {
        id,
        url,
        allows_private: flag(allowsPrivate),
        created_at: milliseconds(createdAt),
        secret,
      }
      // A plant that is being added may not have read the webhook, and would appear later.
      await submitAll([bind(statements.awaitAdding, {}), bind(statements.insert, row)])
    },
    list: async () => (await read(statements.all, {})).map(toWebhook),
    async remove(id) {
      // A stopped webhook gets no new deliveries. Somebody may start it meanwhile.
      while (await affects(submit(stop, { id }))) {
        if (!(await affects(submit(removeDeliveries, { id })))) {
          return affects(submit(remove, { id }))
        }
      }
      return false
    },
    rotate: (id, secret) => affects(submit(statements.rotate, { id, secret })),
    async retry(id) {
      while (await affects(submit(retryDeliveries, { id }))) {}
      return affects(submit(statements.retry, { id }))
    },
  }
}

export function createOutbox(
  { bind, submit, submitAll, read }: Runner,
  statements: WebhookStatements,
): Outbox {
  const release = (
    held: { id: WebhookId; lease: string },
    { delivered, failed }: ClaimOutcome,
  ) =>
    bind(statements.release, {
      ...held,
      delivered: flag(delivered.length > 0),
      failed: flag(failed !== undefined),
      stops: flag(failed !== undefined && failed.claimInMs === undefined),
      claimInMs: BigInt(failed?.claimInMs ?? 0),
    })

  return {
    async claim({ leaseMs, rowsMax, textBytesMax }) {
      for (const row of await read(statements.due, {})) {
        const { id, lease: lastLease, secret, failing_for_ms } = row
        const lease = crypto.randomUUID()
        if (
          (await submit(statements.lease, {
            id,
            lastLease,
            lease,
            leaseMs: BigInt(leaseMs),
          })) === 0
        ) {
          continue
        }
        const due = await read(statements.dueDeliveries, { id, rowsMax, textBytesMax })
        if (due.length === 0) {
          await submitAll([release({ id, lease }, { delivered: [] })])
          continue
        }
        const claim = {
          webhook: toWebhook(row),
          failingForMs: Number(failing_for_ms),
          secret,
          lease,
        }
        return { ...claim, deliveries: due.map(toDelivery) }
      }
      return undefined
    },
    async settle({ webhook, lease }, outcome) {
      const { delivered, failed } = outcome
      const changes: Change[] = delivered.map(position =>
        bind(statements.removeDelivery, { position, lease }),
      )
      if (failed !== undefined) {
        const { id: position, reason, retryInMs } = failed
        const retry = {
          reason,
          retryInMs: retryInMs === undefined ? null : BigInt(retryInMs),
        }
        changes.push(bind(statements.failDelivery, { position, lease, ...retry }))
      }
      await submitAll([...changes, release({ id: webhook.id, lease }, outcome)])
    },
    async stop(id) {
      await submit(statements.stop, { id })
    },
    async figures() {
      const rows = await read(statements.figures, {})
      return rows.map(({ webhook, is_paused, missed, waiting, given_up, oldest_ms }) => ({
        webhook,
        state: stateOf(is_paused),
        // Fewer than none if more were removed.
        missed: Math.max(0, Number(missed)),
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
        // A new delivery is due from when its plant was added.
        ...(row.next_at !== null && {
          nextAttemptAt: toDate(row.next_at || row.added_at),
        }),
      }))
    },
  }
}

type Known =
  | 'id'
  | 'url'
  | 'allows_private'
  | 'created_at'
  | 'is_paused'
  | 'failures'
  | 'failing_since'

function toWebhook(row: Pick<Selectable<WebhookRow>, Known>): Webhook {
  return {
    id: row.id,
    url: row.url,
    allowsPrivate: row.allows_private === 1n,
    createdAt: toDate(row.created_at),
    state: stateOf(row.is_paused),
    failures: Number(row.failures),
    ...(row.failing_since !== null && { failingSince: toDate(row.failing_since) }),
  }
}

function toDelivery({
  position,
  version,
  added_at,
  attempts,
  ...plant
}: DeliveryRow): Delivery {
  const added = {
    plant: toPlant(plant),
    version: toVersion(version),
    addedAt: toDate(added_at),
  }
  return { id: position, added, attempts: Number(attempts) }
}

const stateOf = (isPaused: bigint): WebhookState =>
  isPaused === 1n ? 'stopped' : 'active'

const flag = (is: boolean) => (is ? 1n : 0n)

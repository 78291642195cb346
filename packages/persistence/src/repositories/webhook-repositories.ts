import type { ClaimOutcome, Delivery, Webhook, WebhookId } from '@plant-store/webhooks'
import { milliseconds, toPlant, toVersion } from '../schema/tables.ts'
import type { Storage } from '../storage.ts'
import type { Change, StatementRunner } from './statements.ts'
import { type DeliveryRow, setBackMsMin, type WebhookRow } from './webhook-statements.ts'

/** Returns the ports of the webhooks, on the tables of any database. */
export function createWebhookRepositories({
  change,
  submit,
  submitAll,
  read,
}: Omit<StatementRunner, 'readPage'>): Pick<Storage, 'webhooks' | 'outbox'> {
  const affects = async (change: Change) => (await submit(change)) > 0
  const release = (held: { id: WebhookId; lease: string }, { delivered, failed }: ClaimOutcome) =>
    change('releaseWebhook', {
      ...held,
      delivered: flag(delivered.length > 0),
      failed: flag(failed !== undefined),
      pauses: flag(failed !== undefined && failed.claimInMs === undefined),
      claimInMs: BigInt(failed?.claimInMs ?? 0),
    })

  return {
    webhooks: {
      async add({ id, url, allowsPrivate, createdAt }, secret) {
        const row = {
          id,
          url,
          allows_private: flag(allowsPrivate),
          created_at: milliseconds(createdAt),
          secret,
        }
        await submitAll([change('beginAnnouncing'), change('insertWebhook', row)])
      },
      list: async () => (await read('webhooks')).map(toWebhook),
      async remove(id) {
        // A full webhook gets no new deliveries. A courier may find room in it meanwhile.
        while (await affects(change('fillWebhook', { id, isFull: 1n }))) {
          if (!(await affects(change('removeDeliveries', { id }))))
            return affects(change('removeWebhook', { id }))
        }
        return false
      },
      rotate: (id, secret) => affects(change('rotateSecret', { id, secret })),
      async retry(id) {
        while (await affects(change('retryDeliveries', { id })));
        return affects(change('retryWebhook', { id }))
      },
    },
    outbox: {
      async claim({ leaseMs, rowsMax, textBytesMax }) {
        for (const row of await read('dueWebhooks')) {
          const { id, lease: before, secret, failing_for_ms } = row
          if (row.set_back_ms > setBackMsMin) while (await affects(change('hastenRetries', { id })));
          const lease = crypto.randomUUID()
          const leasing = change('leaseWebhook', { id, before, lease, leaseMs: BigInt(leaseMs) })
          if (!(await affects(leasing))) continue
          const due = await read('dueDeliveries', { id, rowsMax, textBytesMax })
          if (due.length === 0) {
            await submit(release({ id, lease }, { delivered: [] }))
            continue
          }
          const claim = { webhook: toWebhook(row), failingForMs: Number(failing_for_ms), secret, lease }
          return { ...claim, deliveries: due.map(toDelivery) }
        }
        return undefined
      },
      async settle({ webhook, lease }, outcome) {
        const { delivered, failed } = outcome
        const changes = delivered.map(position => change('removeDelivery', { position, lease }))
        if (failed !== undefined) {
          const { id: position, reason, retryInMs } = failed
          const retry = { reason, retryInMs: retryInMs === undefined ? null : BigInt(retryInMs) }
          changes.push(change('failDelivery', { position, lease, ...retry }))
        }
        await submitAll([...changes, release({ id: webhook.id, lease }, outcome)])
      },
      async setFull(id, isFull) {
        await submit(change('fillWebhook', { id, isFull: flag(isFull) }))
      },
      async figures() {
        const rows = await read('webhookFigures')
        return rows.map(({ webhook, is_full, missed, waiting, given_up, oldest_ms }) => ({
          webhook,
          isFull: is_full === 1n,
          missed: Number(missed),
          waiting: Number(waiting),
          givenUp: Number(given_up),
          ...(oldest_ms !== null && { oldestMs: Number(oldest_ms) }),
        }))
      },
      async deliveriesOf(id, rowsMax) {
        const rows = await read('loggedDeliveries', { id, rowsMax })
        return rows.map(row => ({
          ...toDelivery(row),
          ...(row.reason !== null && { reason: row.reason }),
          // A new delivery is due from when its plant was added.
          ...(row.next_at !== null && { nextAttemptAt: toDate(row.next_at || row.added_at) }),
        }))
      },
    },
  }
}

function toWebhook(row: WebhookRow): Webhook {
  return {
    id: row.id,
    url: row.url,
    allowsPrivate: row.allows_private === 1n,
    createdAt: toDate(row.created_at),
    state: row.is_paused === 1n ? 'paused' : 'active',
    failures: Number(row.failures),
    ...(row.failing_since !== null && { failingSince: toDate(row.failing_since) }),
  }
}

function toDelivery({ position, version, added_at, attempts, ...plant }: DeliveryRow): Delivery {
  const added = { plant: toPlant(plant), version: toVersion(version), addedAt: toDate(added_at) }
  return { id: position, added, attempts: Number(attempts) }
}

const flag = (is: boolean) => (is ? 1n : 0n)
const toDate = (milliseconds: bigint) => new Date(Number(milliseconds))

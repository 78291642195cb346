import type {
  ClaimOutcome,
  Delivery,
  Outbox,
  Webhook,
  WebhookId,
  WebhookRepository,
  WebhookSecret,
} from '@plant-store/webhooks'
import type { Change } from './group-commit.ts'
import type { StatementRunner } from './repositories.ts'
import { milliseconds, type PlantRow, toPlant, toVersion } from './tables.ts'
import { setBackMsMin } from './webhook-statements.ts'

interface WebhookRow {
  id: WebhookId
  url: string
  allows_private: bigint
  created_at: bigint
  secret: WebhookSecret
  is_paused: bigint
  failures: bigint
  failing_since: bigint | null
  failing_for_ms: bigint
  /** Negative unless the clock was set back. */
  set_back_ms: bigint
  lease: string
}

interface DeliveryRow extends PlantRow {
  position: bigint
  version: bigint
  added_at: bigint
  attempts: bigint
  /** 0 for a new delivery, `null` for one that was given up. */
  next_at: bigint | null
  reason: string | null
}

interface FiguresRow {
  webhook: WebhookId
  is_full: bigint
  missed: bigint
  waiting: bigint
  given_up: bigint
  oldest_ms: bigint | null
}

/** Returns the ports of the webhooks, on the tables of any database. */
export function createWebhookRepositories({
  submit,
  submitAll,
  read,
}: Pick<StatementRunner, 'submit' | 'submitAll' | 'read'>): {
  readonly webhooks: WebhookRepository
  readonly outbox: Outbox
} {
  const change = async (...change: Change) => (await submit(change)) > 0
  return {
    webhooks: {
      async add({ id, url, allowsPrivate, createdAt }, secret) {
        const row = [id, url, flag(allowsPrivate), milliseconds(createdAt), secret] as const
        await submitAll([['beginAnnouncing'], ['insertWebhook', ...row]])
      },
      list: async () => (await read<WebhookRow>('webhooks')).map(toWebhook),
      async remove(id) {
        // A full webhook gets no new deliveries. A courier may find room in it meanwhile.
        while (await change('fillWebhook', id, 1n)) {
          if (!(await change('removeDeliveries', id))) return change('removeWebhook', id)
        }
        return false
      },
      rotate: (id, secret) => change('rotateSecret', id, secret),
      async retry(id) {
        while (await change('retryDeliveries', id));
        return change('retryWebhook', id)
      },
    },
    outbox: {
      async claim({ leaseMs, rowsMax, textBytesMax }) {
        for (const row of await read<WebhookRow>('dueWebhooks')) {
          if (row.set_back_ms > setBackMsMin) while (await change('hastenRetries', row.id));
          const lease = crypto.randomUUID()
          if (!(await change('leaseWebhook', row.id, row.lease, lease, BigInt(leaseMs)))) continue
          const due = await read<DeliveryRow>('dueDeliveries', row.id, rowsMax, textBytesMax)
          if (due.length === 0) {
            await submit(release(row.id, lease, { delivered: [] }))
            continue
          }
          const { secret, failing_for_ms } = row
          const claim = { webhook: toWebhook(row), failingForMs: Number(failing_for_ms), secret, lease }
          return { ...claim, deliveries: due.map(toDelivery) }
        }
        return undefined
      },
      async settle({ webhook, lease }, outcome) {
        const { delivered, failed } = outcome
        const changes: Change[] = delivered.map(position => ['removeDelivery', position, lease])
        if (failed !== undefined) {
          changes.push(['failDelivery', failed.id, lease, failed.reason, bigintOrNull(failed.retryInMs)])
        }
        await submitAll([...changes, release(webhook.id, lease, outcome)])
      },
      async setFull(id, isFull) {
        await submit(['fillWebhook', id, flag(isFull)])
      },
      async figures() {
        const rows = await read<FiguresRow>('webhookFigures')
        return rows.map(({ webhook, is_full, missed, waiting, given_up, oldest_ms }) => ({
          webhook,
          isFull: is_full === 1n,
          missed: Number(missed),
          waiting: Number(waiting),
          givenUp: Number(given_up),
          ...(oldest_ms !== null && { oldestMs: Number(oldest_ms) }),
        }))
      },
      async log(id, rowsMax) {
        const rows = await read<DeliveryRow>('loggedDeliveries', id, rowsMax)
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

function release(id: WebhookId, lease: string, { delivered, failed }: ClaimOutcome): Change {
  const isPaused = failed !== undefined && failed.claimInMs === undefined
  const flags = [delivered.length > 0, failed !== undefined, isPaused].map(flag)
  return ['releaseWebhook', id, lease, ...flags, BigInt(failed?.claimInMs ?? 0)]
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
  const event = { plant: toPlant(plant), version: toVersion(version), addedAt: toDate(added_at) }
  return { id: position, event, attempts: Number(attempts) }
}

const flag = (is: boolean) => (is ? 1n : 0n)
const bigintOrNull = (value: number | undefined) => (value === undefined ? null : BigInt(value))
const toDate = (milliseconds: bigint) => new Date(Number(milliseconds))

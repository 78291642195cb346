import type {
  ClaimOutcome,
  Delivery,
  Outbox,
  Webhook,
  WebhookId,
  WebhookRepository,
  WebhookSecret,
} from '@plant-store/webhooks'
import { type RawBuilder, sql } from 'kysely'
import { columnList, type Dialect } from '../schema/dialect.ts'
import { milliseconds, type PlantRow, plantColumns, textBytesInSql, toDate } from '../schema/tables.ts'
import { toPlant, toVersion } from './plants.ts'
import type { Call, StatementRunner } from './statements.ts'

export interface WebhookRow {
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

export interface DeliveryRow extends PlantRow {
  position: bigint
  version: bigint
  added_at: bigint
  attempts: bigint
  /** 0 for a new delivery, `null` for one that was given up. */
  next_at: bigint | null
  reason: string | null
}

export interface FiguresRow {
  webhook: WebhookId
  is_full: bigint
  missed: bigint
  waiting: bigint
  given_up: bigint
  oldest_ms: bigint | null
}

type OfWebhook<Others = unknown> = { readonly id: WebhookId } & Others
type OfDelivery<Others = unknown> = { readonly position: bigint; readonly lease: string } & Others
type NewWebhook = Pick<WebhookRow, 'id' | 'url' | 'allows_private' | 'created_at' | 'secret'>
type Due = OfWebhook<{ readonly rowsMax: number; readonly textBytesMax: number }>
type Lease = OfWebhook<{ readonly before: string; readonly lease: string; readonly leaseMs: bigint }>
type Failure = OfDelivery<{ readonly reason: string; readonly retryInMs: bigint | null }>

/** Rows in one step of a change without a natural limit, so that others can change the store in between. */
const sweepRowsMax = sql.lit(2_000)

/** A lease this far in the future shows that the clock was set back: times before that mean nothing. */
const setBackMsMin = 60_000

const wasSetBack = ({ now }: Dialect) => sql`leased_at > ${now} + ${sql.lit(setBackMsMin)}`

export function webhookReads(dialect: Dialect) {
  const { now } = dialect
  const webhooks = sql<WebhookRow>`
    select id, url, allows_private, created_at, secret, is_paused, failures, failing_since, lease,
      coalesce(${now} - failing_since, 0) as failing_for_ms, leased_at - ${now} as set_back_ms
    from webhooks`
  const firstDue = sql`(select min(next_at) from outbox where webhook = webhooks.id and next_at >= 0)`
  const deliveries = sql<DeliveryRow>`
    select position, version, ${columnList(plantColumns)}, added_at, attempts, next_at, reason
    from outbox`
  const givenUpFirst = sql`order by next_at is not null, position`

  return {
    webhooks: () => sql<WebhookRow>`${webhooks} order by created_at`,
    /** Webhooks that may be leased now, the longest without a lease first. */
    dueWebhooks: () => sql<WebhookRow>`
      ${webhooks}
      where is_paused = 0 and case when ${wasSetBack(dialect)} then ${firstDue} is not null
        else next_claim_at <= ${now} and leased_until <= ${now} and ${firstDue} <= ${now} end
      order by leased_at, created_at limit 10`,
    /** Retries first. */
    dueDeliveries: ({ id, rowsMax, textBytesMax }: Due) => sql<DeliveryRow>`
      ${deliveries} where position in (
        select position from (
          select position, sum(bytes) over (order by position rows between unbounded preceding and 1 preceding)
            as bytes_before
          from (
            select position, ${sql.raw(textBytesInSql)} as bytes
            from outbox where webhook = ${id} and next_at <= ${now} order by next_at desc, position limit ${rowsMax}
          ) as due
        ) as measured where coalesce(bytes_before, 0) < ${textBytesMax}
      ) order by position`,
    /** From the index alone. */
    webhookFigures: () => sql<FiguresRow>`
      select webhooks.id as webhook, is_full, missed, count(next_at) as waiting,
        count(position) - count(next_at) as given_up,
        ${now} - min(case when next_at is not null then added_at end) as oldest_ms
      from webhooks left join outbox on outbox.webhook = webhooks.id group by webhooks.id, is_full, missed`,
    keptDeliveries: ({ id, rowsMax }: OfWebhook<{ rowsMax: number }>) => sql<DeliveryRow>`
      ${deliveries} where position in (
        select position from outbox where webhook = ${id} ${givenUpFirst} limit ${rowsMax}
      ) ${givenUpFirst}`,
  }
}

export interface Release {
  readonly lease: string
  /** Flags are 0 or 1. */
  readonly delivered: bigint
  readonly failed: bigint
  readonly pauses: bigint
  readonly claimInMs: bigint
}

export function webhookChanges(dialect: Dialect) {
  const { now, awaitAdding } = dialect
  const some = (ofWebhook: RawBuilder<unknown>) => sql`
    position in (select position from outbox where webhook = ${ofWebhook} limit ${sweepRowsMax})`
  const isLeasedAs = (lease: string) => sql`
    exists (select 1 from webhooks where webhooks.id = outbox.webhook and lease = ${lease})`

  return {
    awaitAdding: () => awaitAdding,
    insertWebhook: ({ id, url, allows_private, created_at, secret }: NewWebhook) => sql`
      insert into webhooks (id, url, allows_private, created_at, secret)
      values (${id}, ${url}, ${allows_private}, ${created_at}, ${secret}) on conflict do nothing`,
    removeWebhook: ({ id }: OfWebhook) => sql`delete from webhooks where id = ${id}`,
    fillWebhook: ({ id, isFull }: OfWebhook<{ isFull: bigint }>) => sql`
      update webhooks set is_full = ${isFull} where id = ${id}`,
    rotateSecret: ({ id, secret }: OfWebhook<{ secret: WebhookSecret }>) => sql`
      update webhooks set secret = ${secret} where id = ${id}`,
    /** Only if the webhook is unchanged since it was read. */
    leaseWebhook: ({ id, before, lease, leaseMs }: Lease) => sql`
      update webhooks set lease = ${lease}, leased_at = ${now}, leased_until = ${now} + ${leaseMs}
      where id = ${id} and lease = ${before} and is_paused = 0 and (leased_until <= ${now} or ${wasSetBack(dialect)})`,
    releaseWebhook: ({ id, lease, delivered, failed, pauses, claimInMs }: OfWebhook<Release>) => {
      const failingSince = sql`case when ${delivered} = 1 then null else failing_since end`
      return sql`
        update webhooks set
          leased_until = 0,
          failures = case when ${delivered} = 1 then 0 else failures end + ${failed},
          failing_since = case when ${failed} = 1 then coalesce(${failingSince}, ${now}) else ${failingSince} end,
          is_paused = case when ${pauses} = 1 then 1 else is_paused end,
          next_claim_at = ${now} + ${claimInMs}
        where id = ${id} and lease = ${lease}`
    },
    retryWebhook: ({ id }: OfWebhook) => sql`
      update webhooks set is_paused = 0, failures = 0, failing_since = null, next_claim_at = 0 where id = ${id}`,
    retryDeliveries: ({ id }: OfWebhook) => sql`
      update outbox set attempts = 0, next_at = 0 where ${some(sql`
        ${id} and next_at > 0 union all select position from outbox where webhook = ${id} and next_at is null`)}`,
    hastenRetries: ({ id }: OfWebhook) => sql`
      update outbox set next_at = 0 where ${some(sql`${id} and next_at > 0`)}`,
    removeDeliveries: ({ id }: OfWebhook) => sql`delete from outbox where ${some(sql`${id}`)}`,
    /** By lease: SQLite may reuse the position of a removed delivery for another webhook. */
    removeDelivery: ({ position, lease }: OfDelivery) => sql`
      delete from outbox where position = ${position} and ${isLeasedAs(lease)}`,
    /** Without a delay, `next_at` becomes null: the delivery is given up. */
    failDelivery: ({ position, lease, reason, retryInMs }: Failure) => sql`
      update outbox set attempts = attempts + 1, reason = ${reason}, next_at = ${now} + ${retryInMs}
      where position = ${position} and ${isLeasedAs(lease)}`,
  }
}

type WebhookChanges = ReturnType<typeof webhookChanges>
type WebhookChange = Call<keyof WebhookChanges>

/** Returns the ports of the webhooks, on the tables of any database. */
export function createWebhookRepositories({
  changeOf,
  submit,
  submitAll,
  read,
}: StatementRunner<ReturnType<typeof webhookReads>, WebhookChanges>): {
  readonly webhooks: WebhookRepository
  readonly outbox: Outbox
} {
  const affects = async (change: WebhookChange) => (await submit(change)) > 0
  const release = (held: { id: WebhookId; lease: string }, { delivered, failed }: ClaimOutcome) =>
    changeOf('releaseWebhook', {
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
        // A plant that is being added may not have read the webhook, and would appear later.
        await submitAll([changeOf('awaitAdding', {}), changeOf('insertWebhook', row)])
      },
      list: async () => (await read('webhooks', {})).map(toWebhook),
      async remove(id) {
        // A full webhook gets no new deliveries. A courier may find room in it meanwhile.
        while (await affects(changeOf('fillWebhook', { id, isFull: 1n }))) {
          if (!(await affects(changeOf('removeDeliveries', { id }))))
            return affects(changeOf('removeWebhook', { id }))
        }
        return false
      },
      rotate: (id, secret) => affects(changeOf('rotateSecret', { id, secret })),
      async retry(id) {
        while (await affects(changeOf('retryDeliveries', { id })));
        return affects(changeOf('retryWebhook', { id }))
      },
    },
    outbox: {
      async claim({ leaseMs, rowsMax, textBytesMax }) {
        for (const row of await read('dueWebhooks', {})) {
          const { id, lease: before, secret, failing_for_ms } = row
          if (row.set_back_ms > setBackMsMin) while (await affects(changeOf('hastenRetries', { id })));
          const lease = crypto.randomUUID()
          const leasing = changeOf('leaseWebhook', { id, before, lease, leaseMs: BigInt(leaseMs) })
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
        const changes: WebhookChange[] = delivered.map(position =>
          changeOf('removeDelivery', { position, lease }),
        )
        if (failed !== undefined) {
          const { id: position, reason, retryInMs } = failed
          const retry = { reason, retryInMs: retryInMs === undefined ? null : BigInt(retryInMs) }
          changes.push(changeOf('failDelivery', { position, lease, ...retry }))
        }
        await submitAll([...changes, release({ id: webhook.id, lease }, outcome)])
      },
      async setFull(id, isFull) {
        await submit(changeOf('fillWebhook', { id, isFull: flag(isFull) }))
      },
      async figures() {
        const rows = await read('webhookFigures', {})
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
        const rows = await read('keptDeliveries', { id, rowsMax })
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

import { bytesOf, type Dialect, type Parameters, pick, type Query } from '@plant-store/engine'
import type { WebhookId, WebhookSecret } from '@plant-store/webhooks'
import { type Expression, type RawBuilder, sql } from 'kysely'
import { plantColumns, plantNames } from '../plants/tables.ts'
import type { DeliveryRow, WebhookRow } from './tables.ts'

type OfWebhook<Others = unknown> = Parameters<{ id: WebhookId } & Others>
type OfDelivery<Others = unknown> = Parameters<{ position: bigint; lease: string } & Others>
type Due = OfWebhook<{ rowsMax: number; textBytesMax: number }>
type Lease = OfWebhook<{ before: string; lease: string; leaseMs: bigint }>
/** Flags are 0 or 1. */
type Flags = { delivered: bigint; failed: bigint; pauses: bigint }
type Release = OfWebhook<Flags & { lease: string; claimInMs: bigint }>
type Failure = OfDelivery<{ reason: string; retryInMs: bigint | null }>

const written = ['id', 'url', 'allows_private', 'created_at', 'secret'] as const

/** Rows in one step of a change without a natural limit, so that others can change the store in between. */
const sweepRowsMax = sql.lit(2_000)

/** A lease this far in the future shows that the clock was set back: times before that mean nothing. */
export const setBackMsMin = 60_000

const zero = sql.lit(0n)

export function webhookStatements(dialect: Dialect) {
  const { name, now } = dialect
  const db = dialect.tables<{ webhooks: WebhookRow; outbox: DeliveryRow & { webhook: WebhookId } }>()
  const wasSetBack = sql<boolean>`leased_at > ${now} + ${sql.lit(setBackMsMin)}`

  const webhooks = db
    .selectFrom('webhooks')
    .select([...written, 'is_paused', 'failures', 'failing_since', 'lease'])
    .select([
      sql<bigint>`coalesce(${now} - failing_since, 0)`.as('failing_for_ms'),
      // Negative unless the clock was set back.
      sql<bigint>`leased_at - ${now}`.as('set_back_ms'),
    ])
  const firstDue = sql<bigint | null>`(
    select min(next_at) from outbox where webhook = webhooks.id and next_at >= 0
  )`
  const deliveries = db
    .selectFrom('outbox')
    .select(['position', 'version', ...plantNames, 'added_at', 'attempts', 'next_at', 'reason'])
  const alone = <Given>(build: (p: Parameters<Given>) => Query<unknown>) => dialect.change('alone', build)
  const updateOf = (p: OfWebhook) => db.updateTable('webhooks').where('id', '=', p.id)
  const some = (ofWebhook: RawBuilder<unknown>) => sql<boolean>`
    position in (select position from outbox where webhook = ${ofWebhook} limit ${sweepRowsMax})`
  const isLeasedAs = (lease: Expression<string>) =>
    sql<boolean>`exists (select 1 from webhooks where webhooks.id = outbox.webhook and lease = ${lease})`

  return {
    all: dialect.read(() => webhooks.orderBy('created_at')),
    /** Webhooks that may be leased now, the longest without a lease first. */
    due: dialect.read(() =>
      webhooks
        .where('is_paused', '=', zero)
        .where(sql<boolean>`
          case when ${wasSetBack} then ${firstDue} is not null
          else next_claim_at <= ${now} and leased_until <= ${now} and ${firstDue} <= ${now} end`)
        .orderBy('leased_at')
        .orderBy('created_at')
        .limit(sql.lit(10)),
    ),
    /** Retries first. A sum over rows before which the texts have fewer bytes is a window, which the builder lacks. */
    dueDeliveries: dialect.read((p: Due) =>
      deliveries
        .where(sql<boolean>`position in (
          select position from (
            select position, sum(bytes) over (order by position rows between unbounded preceding and 1 preceding)
              as bytes_before
            from (
              select position, ${bytesOf(plantColumns)} as bytes from outbox
              where webhook = ${p.id} and next_at <= ${now} order by next_at desc, position limit ${p.rowsMax}
            ) as due
          ) as measured where coalesce(bytes_before, 0) < ${p.textBytesMax}
        )`)
        .orderBy('position'),
    ),
    /** From the index alone. */
    figures: dialect.read(() =>
      db
        .selectFrom('webhooks')
        .leftJoin('outbox', 'outbox.webhook', 'webhooks.id')
        .select(({ fn }) => [
          'webhooks.id as webhook',
          'is_full',
          'missed',
          fn.count<bigint>('next_at').as('waiting'),
          sql<bigint>`count(position) - count(next_at)`.as('given_up'),
          sql<bigint | null>`${now} - min(case when next_at is not null then added_at end)`.as('oldest_ms'),
        ])
        .groupBy(['webhooks.id', 'is_full', 'missed']),
    ),
    kept: dialect.read((p: OfWebhook<{ rowsMax: number }>) => {
      const givenUpFirst = sql`next_at is not null, position`
      return deliveries
        .where(sql<boolean>`position in (
          select position from outbox where webhook = ${p.id} order by ${givenUpFirst} limit ${p.rowsMax}
        )`)
        .orderBy(givenUpFirst)
    }),

    /** Waits until plants that others are adding are there, and keeps others from adding any until the transaction ends. */
    awaitAdding: alone(() =>
      // On SQLite nobody else writes meanwhile.
      name === 'sqlite' ? sql`delete from webhooks where false` : sql`lock table webhooks in exclusive mode`,
    ),
    insert: alone((p: Parameters<Pick<WebhookRow, (typeof written)[number]>>) =>
      db
        .insertInto('webhooks')
        .values(pick(p, written))
        .onConflict(conflict => conflict.doNothing()),
    ),
    remove: alone((p: OfWebhook) => db.deleteFrom('webhooks').where('id', '=', p.id)),
    fill: alone((p: OfWebhook<{ isFull: bigint }>) => updateOf(p).set({ is_full: p.isFull })),
    rotate: alone((p: OfWebhook<{ secret: WebhookSecret }>) => updateOf(p).set({ secret: p.secret })),
    /** Only if the webhook is unchanged since it was read. */
    lease: alone((p: Lease) =>
      updateOf(p)
        .set({ lease: p.lease, leased_at: now, leased_until: sql<bigint>`${now} + ${p.leaseMs}` })
        .where('lease', '=', p.before)
        .where('is_paused', '=', zero)
        .where(sql<boolean>`(leased_until <= ${now} or ${wasSetBack})`),
    ),
    release: alone((p: Release) => {
      const failingSince = sql<bigint | null>`case when ${p.delivered} = 1 then null else failing_since end`
      return updateOf(p)
        .set({
          leased_until: zero,
          failures: sql<bigint>`case when ${p.delivered} = 1 then 0 else failures end + ${p.failed}`,
          failing_since: sql<bigint | null>`
            case when ${p.failed} = 1 then coalesce(${failingSince}, ${now}) else ${failingSince} end`,
          is_paused: sql<bigint>`case when ${p.pauses} = 1 then 1 else is_paused end`,
          next_claim_at: sql<bigint>`${now} + ${p.claimInMs}`,
        })
        .where('lease', '=', p.lease)
    }),
    retry: alone((p: OfWebhook) =>
      updateOf(p).set({ is_paused: zero, failures: zero, failing_since: sql.lit(null), next_claim_at: zero }),
    ),
    retryDeliveries: alone((p: OfWebhook) =>
      db
        .updateTable('outbox')
        .set({ attempts: zero, next_at: zero })
        .where(
          some(sql`
          ${p.id} and next_at > 0 union all select position from outbox where webhook = ${p.id} and next_at is null`),
        ),
    ),
    hastenRetries: alone((p: OfWebhook) =>
      db
        .updateTable('outbox')
        .set({ next_at: zero })
        .where(some(sql`${p.id} and next_at > 0`)),
    ),
    removeDeliveries: alone((p: OfWebhook) => db.deleteFrom('outbox').where(some(p.id))),
    /** By lease: SQLite may reuse the position of a removed delivery for another webhook. */
    removeDelivery: alone((p: OfDelivery) =>
      db.deleteFrom('outbox').where('position', '=', p.position).where(isLeasedAs(p.lease)),
    ),
    /** Without a delay, `next_at` becomes null: the delivery is given up. */
    failDelivery: alone((p: Failure) =>
      db
        .updateTable('outbox')
        .set({
          attempts: sql<bigint>`attempts + 1`,
          reason: p.reason,
          next_at: sql<bigint | null>`${now} + ${p.retryInMs}`,
        })
        .where('position', '=', p.position)
        .where(isLeasedAs(p.lease)),
    ),
  }
}

export type WebhookStatements = ReturnType<typeof webhookStatements>

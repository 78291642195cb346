import type { ChangeStatement, Dialect, Parameter, Query } from '@plant-store/engine'
import type { WebhookId, WebhookSecret } from '@plant-store/webhooks'
import { type Expression, type RawBuilder, sql } from 'kysely'
import { type DeliveryRow, plantNames, type WebhookRow } from './tables.ts'

type OfWebhook<Others = unknown> = Parameter<{ id: WebhookId } & Others>
type OfDelivery<Others = unknown> = Parameter<
  { position: bigint; lease: string } & Others
>
type Due = OfWebhook<{ rowsMax: number; textBytesMax: number }>
type Lease = OfWebhook<{ lastLease: string; lease: string; leaseMs: bigint }>
/** Flags are 0 or 1. */
type Flags = { delivered: bigint; failed: bigint; stops: bigint }
type Release = OfWebhook<Flags & { lease: string; claimInMs: bigint }>
type FailedDelivery = OfDelivery<{ reason: string; retryInMs: bigint | null }>

const insertedColumns = ['id', 'url', 'allows_private', 'created_at', 'secret'] as const

/** Rows in one step of a change without a natural limit, so that others can change the store in between. */
const sweepRowsMax = sql.lit(2_000)

const [zero, one] = [sql.lit(0n), sql.lit(1n)]

/**
 * The statements of webhooks, and of the outbox, where each row is one plant for one webhook:
 *
 *     next_at 0       new: due at once               removed once it is received
 *     next_at > 0     failed: due at that time       removed, or given up after its last attempt
 *     next_at null    given up, kept for operators   due again by a retry
 *
 * A courier leases a webhook, sends what is due, and releases it. Each lease has a name of its own, and a courier whose lease
 * has ended changes nothing: the courier with the next lease may be sending the same rows.
 */
export function statementsOfBoth(dialect: Dialect) {
  const { now } = dialect
  const db = dialect.tables<{
    webhooks: WebhookRow
    outbox: DeliveryRow & { webhook: WebhookId }
  }>()

  const webhooks = db
    .selectFrom('webhooks')
    .select([...insertedColumns, 'is_paused', 'failures', 'failing_since', 'lease'])
    .select(sql<bigint>`coalesce(${now} - failing_since, 0)`.as('failing_for_ms'))
  const firstDue = sql<bigint | null>`(
    select min(next_at) from outbox where webhook = webhooks.id and next_at >= 0
  )`
  const deliveries = db
    .selectFrom('outbox')
    .select([
      'position',
      'version',
      ...plantNames,
      'added_at',
      'attempts',
      'next_at',
      'reason',
    ])
  const change = <Given>(build: (p: Parameter<Given>) => Query<unknown>) =>
    dialect.change('barrier', build)
  // Counting at each create would cost as much as announcing. So from a stop on, `missed` is less by the plants that there
  // are, and a start adds those that there are then.
  const isActive = sql`is_paused = 0`
  const plantCount = sql`(select count(*) from plants)`
  const missedFrom = (isStopped: RawBuilder<unknown>) =>
    sql<bigint>`missed - case when ${isStopped} then ${plantCount} else 0 end`
  const missedUntilNow = sql<bigint>`missed + case when ${isActive} then 0 else ${plantCount} end`
  const updateOf = (p: OfWebhook) => db.updateTable('webhooks').where('id', '=', p('id'))
  const isInStep = (ofWebhook: RawBuilder<unknown>) => sql<boolean>`
    position in (select position from outbox where webhook = ${ofWebhook} limit ${sweepRowsMax})`
  const isLeasedAs = (lease: Expression<string>) =>
    sql<boolean>`exists (select 1 from webhooks where webhooks.id = outbox.webhook and lease = ${lease})`

  return {
    all: dialect.read(() => webhooks.orderBy('created_at')),
    /** Webhooks that may be leased now, the longest without a lease first. */
    due: dialect.read(() =>
      webhooks
        .where('is_paused', '=', zero)
        .where(
          sql<boolean>`next_claim_at <= ${now} and leased_until <= ${now} and ${firstDue} <= ${now}`,
        )
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
              select position, octet_length(name) + coalesce(octet_length(tag), 0) as bytes from outbox
              where webhook = ${p('id')} and next_at <= ${now} order by next_at desc, position limit ${p('rowsMax')}
            ) as due
          ) as measured where coalesce(bytes_before, 0) < ${p('textBytesMax')}
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
          'is_paused',
          missedUntilNow.as('missed'),
          fn.count<bigint>('next_at').as('waiting'),
          sql<bigint>`count(position) - count(next_at)`.as('given_up'),
          sql<
            bigint | null
          >`${now} - min(case when next_at is not null then added_at end)`.as(
            'oldest_ms',
          ),
        ])
        .groupBy(['webhooks.id', 'is_paused', 'missed']),
    ),
    kept: dialect.read((p: OfWebhook<{ rowsMax: number }>) => {
      const givenUpFirst = sql`next_at is not null, position`
      return deliveries
        .where(sql<boolean>`position in (
          select position from outbox where webhook = ${p('id')} order by ${givenUpFirst} limit ${p('rowsMax')}
        )`)
        .orderBy(givenUpFirst)
    }),

    insert: change((p: Parameter<Pick<WebhookRow, (typeof insertedColumns)[number]>>) =>
      db
        .insertInto('webhooks')
        .values({
          id: p('id'),
          url: p('url'),
          allows_private: p('allows_private'),
          created_at: p('created_at'),
          secret: p('secret'),
        })
        .onConflict(conflict => conflict.doNothing()),
    ),
    remove: change((p: OfWebhook) => db.deleteFrom('webhooks').where('id', '=', p('id'))),
    stop: change((p: OfWebhook) =>
      updateOf(p).set({ is_paused: one, missed: missedFrom(isActive) }),
    ),
    rotate: change((p: OfWebhook<{ secret: WebhookSecret }>) =>
      updateOf(p).set({ secret: p('secret') }),
    ),
    /** Only if the webhook is unchanged since it was read. */
    lease: change((p: Lease) =>
      updateOf(p)
        .set({
          lease: p('lease'),
          leased_at: now,
          leased_until: sql<bigint>`${now} + ${p('leaseMs')}`,
        })
        .where('lease', '=', p('lastLease'))
        .where('is_paused', '=', zero)
        .where(sql<boolean>`leased_until <= ${now}`),
    ),
    release: change((p: Release) => {
      const failingSince = sql<
        bigint | null
      >`case when ${p('delivered')} = 1 then null else failing_since end`
      return updateOf(p)
        .set({
          leased_until: zero,
          failures: sql<bigint>`case when ${p('delivered')} = 1 then 0 else failures end + ${p('failed')}`,
          failing_since: sql<bigint | null>`
            case when ${p('failed')} = 1 then coalesce(${failingSince}, ${now}) else ${failingSince} end`,
          is_paused: sql<bigint>`case when ${p('stops')} = 1 then 1 else is_paused end`,
          missed: missedFrom(sql`${p('stops')} = 1 and ${isActive}`),
          next_claim_at: sql<bigint>`case when ${p('failed')} = 1 then ${now} + ${p('claimInMs')} else 0 end`,
        })
        .where('lease', '=', p('lease'))
    }),
    retry: change((p: OfWebhook) =>
      updateOf(p).set({
        missed: missedUntilNow,
        is_paused: zero,
        failures: zero,
        failing_since: sql.lit(null),
        next_claim_at: zero,
      }),
    ),
    retryDeliveries: change((p: OfWebhook) =>
      db
        .updateTable('outbox')
        .set({ attempts: zero, next_at: zero })
        .where(
          isInStep(sql`
          ${p('id')} and next_at > 0 union all select position from outbox where webhook = ${p('id')} and next_at is null`),
        ),
    ),
    removeDeliveries: change((p: OfWebhook) =>
      db.deleteFrom('outbox').where(isInStep(p('id'))),
    ),
    /** By lease: SQLite may reuse the position of a removed delivery for another webhook. */
    removeDelivery: change((p: OfDelivery) =>
      db
        .deleteFrom('outbox')
        .where('position', '=', p('position'))
        .where(isLeasedAs(p('lease'))),
    ),
    /** Without a delay, `next_at` becomes null: the delivery is given up. */
    failDelivery: change((p: FailedDelivery) =>
      db
        .updateTable('outbox')
        .set({
          attempts: sql<bigint>`attempts + 1`,
          reason: p('reason'),
          next_at: sql<bigint | null>`${now} + ${p('retryInMs')}`,
        })
        .where('position', '=', p('position'))
        .where(isLeasedAs(p('lease'))),
    ),
  }
}

export type WebhookStatements = ReturnType<typeof statementsOfBoth> & {
  /**
   * Waits until the plants that others are adding are stored, and keeps others from
   * adding any until the transaction ends.
   */
  readonly awaitAdding: ChangeStatement<object>
}

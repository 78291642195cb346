import type { Dialect, Parameter } from '@plant-store/engine'
import type { WebhookId } from '@plant-store/webhooks'
import { type Expression, type Kysely, type RawBuilder, sql } from 'kysely'
import type { DeliveryRow, NewWebhookRow, WebhookRow } from './tables.ts'

/**
 * The statements of webhooks, and of the outbox, where each row is one plant for one
 * webhook. `next_at` is its state:
 *
 * - 0: new and due at once. Removed once it is received.
 * - greater: failed, and due at that time. Removed once it is received, or given up.
 * - null: given up, and kept for operators. A retry makes it due again.
 *
 * A courier leases a webhook, sends what is due, and releases it. Each lease has a name
 * of its own. A courier whose lease has ended changes nothing, because the courier with
 * the next lease may be sending the same rows.
 *
 * All changes are barriers, because a row of the outbox is found by its webhook and a
 * webhook by its id, and both tables change together.
 */
export type WebhookStatements = ReturnType<typeof webhookStatements>

interface Id {
  readonly id: WebhookId
}

/** Each flag is 0 or 1. */
interface Release {
  readonly lease: string
  readonly delivered: bigint
  readonly failed: bigint
  readonly stops: bigint
  readonly claimInMs: bigint
}

/** The lease must match, because SQLite may reuse the position of a removed delivery. */
interface LeasedDelivery {
  readonly position: bigint
  readonly lease: string
}

interface Tables {
  readonly webhooks: WebhookRow
  readonly outbox: DeliveryRow & { readonly webhook: WebhookId }
}

/**
 * How many rows of the outbox one change may take, so that others can change the store
 * in between.
 */
const sweepRowsMax = sql.lit(2_000)
const webhooksMax = sql.lit(10)
const no = sql.lit(0n)

export function webhookStatements(dialect: Dialect) {
  const db = dialect.tables<Tables>()
  return {
    ...readsOn(dialect, db),
    ...webhookChangesOn(dialect, db),
    ...deliveryChangesOn(dialect, db),
  }
}

function readsOn({ now, read }: Dialect, db: Kysely<Tables>) {
  const webhooks = db
    .selectFrom('webhooks')
    .select(['id', 'url', 'allows_private', 'created_at', 'secret', 'events'])
    .select('is_stopped')
    .select(['failures', 'failing_since', 'lease'])
    .select(sql<bigint>`coalesce(${now} - failing_since, 0)`.as('failing_for_ms'))
  // A delivery waits for an earlier one of its plant that failed. The index
  // `outbox_retries` has only those that did.
  const isNext = sql`not exists (
    select 1 from outbox as earlier
    where earlier.webhook = outbox.webhook and earlier.id = outbox.id
      and earlier.position < outbox.position
      and earlier.next_at > 0 and earlier.next_at > ${now}
  )`
  // With its own order, PostgreSQL reads the index for each webhook, and not all rows.
  const hasDue = sql<boolean>`(
    select 1 from outbox where webhook = webhooks.id and next_at <= ${now} and ${isNext}
    order by next_at desc, position limit 1
  ) = 1`
  const deliveries = db
    .selectFrom('outbox')
    .select(['position', 'event', 'version', 'id', 'name', 'tag', 'added_at'])
    .select(['attempts', 'next_at', 'reason'])
  // The age of the oldest delivery that waits.
  const ageOfOldest = sql<bigint | null>`
    ${now} - min(case when next_at is not null then added_at end)`
  const givenUpFirst = sql`next_at is not null, position`

  return {
    all: read(() => webhooks.orderBy('created_at')),
    /**
     * Webhooks that may be leased now. The one without a lease for longest comes first.
     */
    due: read(() =>
      webhooks
        .where('is_stopped', '=', no)
        .where(sql<boolean>`next_claim_at <= ${now} and leased_until <= ${now}`)
        .where(hasDue)
        .orderBy('leased_at')
        .orderBy('created_at')
        .limit(webhooksMax),
    ),
    /** The due deliveries of a webhook, of which retries come first. */
    // The builder lacks windows, such as the sum over the rows before.
    dueDeliveries: read((p: Parameter<Id & { rowsMax: number; textBytesMax: number }>) =>
      deliveries
        .where(sql<boolean>`position in (
          select position from (
            select position, sum(bytes)
              over (order by position rows between unbounded preceding and 1 preceding)
              as bytes_before
            from (
              select position, octet_length(name) + coalesce(octet_length(tag), 0) as bytes
              from outbox
              where webhook = ${p('id')} and next_at <= ${now} and ${isNext}
              order by next_at desc, position limit ${p('rowsMax')}
            ) as due
          ) as measured where coalesce(bytes_before, 0) < ${p('textBytesMax')}
        )`)
        .orderBy('position'),
    ),
    // The index has all of these columns of the outbox, so no row is read.
    figures: read(() =>
      db
        .selectFrom('webhooks')
        .leftJoin('outbox', 'outbox.webhook', 'webhooks.id')
        .select([
          'webhooks.id as webhook',
          'is_stopped',
          sql<bigint>`count("next_at")`.as('waiting'),
          sql<bigint>`count(position) - count(next_at)`.as('given_up'),
          ageOfOldest.as('oldest_ms'),
        ])
        .groupBy(['webhooks.id', 'is_stopped']),
    ),
    /** Deliveries that were given up, then those that wait. */
    kept: read((p: Parameter<Id & { rowsMax: number }>) =>
      deliveries
        .where(sql<boolean>`position in (
          select position from outbox where webhook = ${p('id')}
          order by ${givenUpFirst} limit ${p('rowsMax')}
        )`)
        .orderBy(givenUpFirst),
    ),
  }
}

function webhookChangesOn({ name, now, change }: Dialect, db: Kysely<Tables>) {
  const update = (id: Expression<WebhookId>) =>
    db.updateTable('webhooks').where('id', '=', id)
  return {
    /**
     * Waits until the changes of plants that others are making are stored, and keeps
     * others from making any until the transaction ends. SQLite has a single writer, so
     * there is nothing to wait for, and this changes no row.
     */
    awaitChanges: change<object>('barrier', () =>
      name === 'sqlite'
        ? sql`delete from webhooks where false`
        : sql`lock table webhooks in exclusive mode`,
    ),
    insert: change('barrier', (p: Parameter<NewWebhookRow>) =>
      db
        .insertInto('webhooks')
        .values({
          id: p('id'),
          url: p('url'),
          allows_private: p('allows_private'),
          created_at: p('created_at'),
          secret: p('secret'),
          events: p('events'),
        })
        .onConflict(conflict => conflict.doNothing()),
    ),
    remove: change('barrier', (p: Parameter<Id>) =>
      db.deleteFrom('webhooks').where('id', '=', p('id')),
    ),
    stop: change('barrier', (p: Parameter<Id>) =>
      update(p('id')).set({ is_stopped: sql.lit(1n) }),
    ),
    rotate: change('barrier', (p: Parameter<Id & Pick<WebhookRow, 'secret'>>) =>
      update(p('id')).set({ secret: p('secret') }),
    ),
    setEvents: change('barrier', (p: Parameter<Id & { events: string }>) =>
      update(p('id')).set({ events: p('events') }),
    ),
    /** Changes nothing if the webhook was leased since it was read, with `lastLease`. */
    lease: change(
      'barrier',
      (p: Parameter<Id & { lastLease: string; lease: string; leaseMs: bigint }>) =>
        update(p('id'))
          .set({
            lease: p('lease'),
            leased_at: now,
            leased_until: sql<bigint>`${now} + ${p('leaseMs')}`,
          })
          .where('lease', '=', p('lastLease'))
          .where('is_stopped', '=', no)
          .where(sql<boolean>`leased_until <= ${now}`),
    ),
    release: change('barrier', (p: Parameter<Id & Release>) => {
      const failingSince = sql<bigint | null>`
        case when ${p('delivered')} = 1 then null else failing_since end`
      return update(p('id'))
        .set({
          leased_until: no,
          failures: sql<bigint>`
            case when ${p('delivered')} = 1 then 0 else failures end + ${p('failed')}`,
          failing_since: sql<bigint | null>`
            case when ${p('failed')} = 1
              then coalesce(${failingSince}, ${now}) else ${failingSince} end`,
          is_stopped: sql<bigint>`
            case when ${p('stops')} = 1 then 1 else is_stopped end`,
          next_claim_at: sql<bigint>`
            case when ${p('failed')} = 1 then ${now} + ${p('claimInMs')} else 0 end`,
        })
        .where('lease', '=', p('lease'))
    }),
    /** Makes a webhook work from now on as if it had never failed. */
    retry: change('barrier', (p: Parameter<Id>) =>
      update(p('id')).set({
        is_stopped: no,
        failures: no,
        failing_since: sql.lit(null),
        next_claim_at: no,
      }),
    ),
  }
}

/**
 * Returns the changes of the outbox. `retryDeliveries` and `removeDeliveries` change a
 * part of the rows, and are repeated until they change none.
 */
function deliveryChangesOn({ now, change }: Dialect, db: Kysely<Tables>) {
  const isAmong = (positions: RawBuilder<unknown>) =>
    sql<boolean>`position in (${positions} limit ${sweepRowsMax})`
  const isLeasedAs = (lease: Expression<string>) => sql<boolean>`exists (
    select 1 from webhooks where webhooks.id = outbox.webhook and lease = ${lease}
  )`
  return {
    retryDeliveries: change('barrier', (p: Parameter<Id>) =>
      db
        .updateTable('outbox')
        .set({ attempts: no, next_at: no })
        .where(
          isAmong(sql`
            select position from outbox where webhook = ${p('id')} and next_at > 0
            union all
            select position from outbox where webhook = ${p('id')} and next_at is null`),
        ),
    ),
    removeDeliveries: change('barrier', (p: Parameter<Id>) =>
      db
        .deleteFrom('outbox')
        .where(isAmong(sql`select position from outbox where webhook = ${p('id')}`)),
    ),
    removeDelivery: change('barrier', (p: Parameter<LeasedDelivery>) =>
      db
        .deleteFrom('outbox')
        .where('position', '=', p('position'))
        .where(isLeasedAs(p('lease'))),
    ),
    /** Without `retryInMs`, the delivery is given up. */
    failDelivery: change(
      'barrier',
      (p: Parameter<LeasedDelivery & { reason: string; retryInMs: bigint | null }>) =>
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

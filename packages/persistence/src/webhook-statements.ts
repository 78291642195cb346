import { type Kysely, type RawBuilder, sql } from 'kysely'
import { announceOnSqlite, databaseTime } from './announcing.ts'
import { type Tables, textBytesInSql } from './tables.ts'

/** The differences between the databases in statements. */
export interface WebhookDialect {
  readonly now: RawBuilder<unknown>
  /** Lets added plants be announced, with the first webhook at the latest. */
  readonly announce: RawBuilder<unknown>
  /** Returns a table `given` of a change's parameters. */
  given(columns: Readonly<Record<string, 'text' | 'bigint'>>): RawBuilder<unknown>
  /** Returns the clause that reports the affected rows. */
  affected(key: string): RawBuilder<unknown>
}

export const sqliteWebhooks: WebhookDialect = {
  now: databaseTime.integer,
  announce: announceOnSqlite,
  given: columns => {
    const values = Object.keys(columns).map(column => sql`${''} as ${sql.ref(column)}`)
    return sql`(select ${sql.join(values)}) as given`
  },
  affected: () => sql``,
}

/** Rows in one step of a change without a natural limit, so that others can change the store in between. */
const sweepRowsMax = 2_000

/** A lease this far in the future shows that the clock was set back: times before that mean nothing. */
export const setBackMsMin = 60_000

/** Returns the statements of webhooks and deliveries. The values are placeholders, and each `given` names its own. */
export function webhookStatements(db: Kysely<Tables>, { now, announce, given, affected }: WebhookDialect) {
  const compiled = <Name extends string>(statements: Record<Name, RawBuilder<unknown>>) => {
    const entries = Object.entries<RawBuilder<unknown>>(statements)
    return Object.fromEntries(entries.map(([name, each]) => [name, each.compile(db).sql])) as Record<
      Name,
      string
    >
  }
  const webhooks = sql`
    select id, url, allows_private, created_at, secret, is_paused, failures, failing_since, lease,
      coalesce(${now} - failing_since, 0) as failing_for_ms, leased_at - ${now} as set_back_ms
    from webhooks`
  const wasSetBack = sql`leased_at > ${now} + ${sql.lit(setBackMsMin)}`
  const firstDue = sql`(select min(next_at) from outbox where webhook = webhooks.id and next_at >= 0)`
  const due = sql`next_at <= ${now}`
  const deliveries = sql`select position, version, id, name, tag, added_at, attempts, next_at, reason from outbox`
  const givenUpFirst = sql`order by next_at is not null, position`
  const webhook = given({ id: 'text' })
  /** Updates the webhooks that a change names, with their lease if it has one. */
  const update = (values: RawBuilder<unknown>, table: RawBuilder<unknown>, condition = sql`true`) => sql`
    update webhooks set ${values} from ${table} where webhooks.id = given.id and ${condition} ${affected('webhooks.id')}`
  const isLeased = sql`webhooks.lease = given.lease`
  const failingSince = sql`case given.delivered when 1 then null else failing_since end`

  return {
    read: compiled({
      webhooks: sql`${webhooks} order by created_at`,
      /** Webhooks that may be leased now, the longest without a lease first. */
      dueWebhooks: sql`
        ${webhooks}
        where is_paused = 0 and case when ${wasSetBack} then ${firstDue} is not null
          else next_claim_at <= ${now} and leased_until <= ${now} and ${firstDue} <= ${now} end
        order by leased_at, created_at limit 10`,
      /** Retries first. Ends at the size in the last parameter. */
      dueDeliveries: sql`
        ${deliveries} where position in (
          select position from (
            select position, sum(bytes) over (order by position rows between unbounded preceding and 1 preceding)
              as bytes_before
            from (
              select position, ${sql.raw(textBytesInSql)} as bytes
              from outbox where webhook = ${''} and ${due} order by next_at desc, position limit ${0n}
            ) as due
          ) as measured where coalesce(bytes_before, 0) < ${0n}
        ) order by position`,
      /** From the index alone. */
      webhookFigures: sql`
        select webhooks.id as webhook, is_full, missed, count(next_at) as waiting,
          count(position) - count(next_at) as given_up,
          ${now} - min(case when next_at is not null then added_at end) as oldest_ms
        from webhooks left join outbox on outbox.webhook = webhooks.id group by webhooks.id, is_full, missed`,
      loggedDeliveries: sql`
        ${deliveries} where position in (
          select position from outbox where webhook = ${''} ${givenUpFirst} limit ${0n}
        ) ${givenUpFirst}`,
    }),
    change: compiled({
      beginAnnouncing: announce,
      insertWebhook: sql`
        insert into webhooks (id, url, allows_private, created_at, secret)
        select id, url, allows_private, created_at, secret
        from ${given({ id: 'text', url: 'text', allows_private: 'bigint', created_at: 'bigint', secret: 'text' })}
        where true on conflict do nothing ${affected('id')}`,
      removeWebhook: sql`delete from webhooks where id in (select id from ${webhook}) ${affected('id')}`,
      fillWebhook: update(sql`is_full = given.is_full`, given({ id: 'text', is_full: 'bigint' })),
      rotateSecret: update(sql`secret = given.secret`, given({ id: 'text', secret: 'text' })),
      /** Only if the webhook is unchanged since it was read. */
      leaseWebhook: update(
        sql`lease = given.lease, leased_at = ${now}, leased_until = ${now} + given.lease_ms`,
        given({ id: 'text', lease_before: 'text', lease: 'text', lease_ms: 'bigint' }),
        sql`webhooks.lease = given.lease_before and is_paused = 0 and (leased_until <= ${now} or ${wasSetBack})`,
      ),
      releaseWebhook: update(
        sql`
          leased_until = 0,
          failures = case given.delivered when 1 then 0 else failures end + given.failed,
          failing_since = case given.failed when 1 then coalesce(${failingSince}, ${now}) else ${failingSince} end,
          is_paused = case given.pauses when 1 then 1 else is_paused end,
          next_claim_at = ${now} + given.claim_in_ms`,
        given({
          id: 'text',
          lease: 'text',
          delivered: 'bigint',
          failed: 'bigint',
          pauses: 'bigint',
          claim_in_ms: 'bigint',
        }),
        isLeased,
      ),
      retryWebhook: update(
        sql`is_paused = 0, failures = 0, failing_since = null, next_claim_at = 0`,
        webhook,
      ),
      retryDeliveries: sql`
        update outbox set attempts = 0, next_at = 0 where position in (
          with named as (select id from ${webhook})
          select position from outbox where webhook in (select id from named) and next_at > 0
          union all select position from outbox where webhook in (select id from named) and next_at is null
          limit ${sql.lit(sweepRowsMax)}
        ) ${affected('webhook')}`,
      hastenRetries: sql`
        update outbox set next_at = 0 where position in (
          select position from outbox where webhook in (select id from ${webhook}) and next_at > 0
          limit ${sql.lit(sweepRowsMax)}
        ) ${affected('webhook')}`,
      removeDeliveries: sql`
        delete from outbox where position in (
          select position from outbox where webhook in (select id from ${webhook}) limit ${sql.lit(sweepRowsMax)}
        ) ${affected('webhook')}`,
      /** By lease: SQLite may reuse the position of a removed delivery for another webhook. */
      removeDelivery: sql`
        delete from outbox where position in (
          select held.position from ${given({ position: 'bigint', lease: 'text' })}
          join outbox as held on held.position = given.position
          join webhooks on webhooks.id = held.webhook and ${isLeased}
        ) ${affected('position')}`,
      /** Without a delay, `next_at` becomes null: the delivery is given up. */
      failDelivery: sql`
        update outbox
        set attempts = attempts + 1, reason = given.reason, next_at = ${now} + given.retry_in_ms
        from ${given({ position: 'bigint', lease: 'text', reason: 'text', retry_in_ms: 'bigint' })}, webhooks
        where outbox.position = given.position and webhooks.id = outbox.webhook and ${isLeased}
        ${affected('outbox.position')}`,
      beginSilence: sql`insert into silence values (1)`,
      endSilence: sql`delete from silence`,
    }),
  }
}

import { Kysely, PostgresDialect, type RawBuilder, SqliteDialect, sql } from 'kysely'
import { plantColumns, type Tables } from './tables.ts'

/** The differences between the databases in SQL. */
export interface Dialect {
  /** Compiles statements. The engine runs them. */
  readonly compiler: Kysely<Tables>
  readonly int64: 'integer' | 'bigint'
  /** Makes SQLite refuse values of another type than the column's. */
  readonly tableOptions: RawBuilder<unknown>
  /** The names of all tables beside which a store's tables would be. */
  readonly tableNames: RawBuilder<{ name: string }>
  /** The columns or expressions of the index on tags. */
  readonly plantsByTag: RawBuilder<unknown>
  /** Returns a condition for which that index serves. */
  readonly hasTag: (tag: string) => RawBuilder<boolean>
  /** Milliseconds since 1970 by the database's clock, which all processes on a store share. */
  readonly now: RawBuilder<bigint>
  /** Lets added plants be announced, with the first webhook at the latest. */
  readonly beginAnnouncing: RawBuilder<unknown>
  /** Every upgrade does so, after its last migration. */
  readonly replaceTrigger: (db: Kysely<Tables>) => Promise<void>
}

const outboxColumns = sql.raw(['webhook', 'version', ...plantColumns, 'added_at'].join(', '))
const valuesOf = (added: string) =>
  sql.raw(['version', ...plantColumns].map(each => `${added}.${each}`).join(', '))

const sqliteNow = sql<bigint>`cast(unixepoch('subsec') * 1000 as integer)`

/**
 * Adds one delivery for each webhook with room, in the transaction that adds a plant, whatever statement adds it. An
 * upsert that replaces a plant adds none. A row in `silence`, which exists only within a transaction, suppresses them.
 *
 * Created with the first webhook, and kept: without webhooks, the trigger would cost 2 % of the creates.
 */
const announceOnSqlite = sql`
  create trigger if not exists announce_added_plant after insert on plants
  when exists (select 1 from webhooks) and not exists (select 1 from silence)
  begin
    insert into outbox (${outboxColumns})
      select webhooks.id, ${valuesOf('new')}, ${sqliteNow}
      from webhooks where is_full = 0;
    update webhooks set missed = missed + 1 where is_full = 1;
  end`

export const sqliteDialect: Dialect = {
  compiler: new Kysely({ dialect: new SqliteDialect({ database: () => Promise.reject() }) }),
  int64: 'integer',
  tableOptions: sql`strict`,
  tableNames: sql`select name from sqlite_schema where type = 'table'`,
  plantsByTag: sql`tag, id`,
  hasTag: tag => sql`tag = ${tag}`,
  now: sqliteNow,
  beginAnnouncing: announceOnSqlite,
  async replaceTrigger(db) {
    await sql`drop trigger if exists announce_added_plant`.execute(db)
    const { rows } = await sql`select 1 from webhooks limit 1`.execute(db)
    if (rows.length > 0) await announceOnSqlite.execute(db)
  },
}

const postgresNow = sql<bigint>`cast(extract(epoch from statement_timestamp()) * 1000 as bigint)`

/**
 * The same for each statement, which may add thousands of plants. The lock keeps a webhook from being removed in
 * between, and shows it as it is after a concurrent change.
 *
 * Created with the store: a trigger that is created later waits for all transactions, and all later ones for it.
 */
const announceOnPostgres = [
  sql`
    create or replace function announce_added_plants() returns trigger language plpgsql set search_path from current as $$
    begin
      if exists (select from webhooks) and not exists (select from silence) then
        with webhook as materialized (select id, is_full from webhooks for key share),
        missed_by as (
          update webhooks set missed = missed + (select count(*) from added)
          from webhook where webhooks.id = webhook.id and webhook.is_full = 1
        )
        insert into outbox (${outboxColumns})
          select webhook.id, ${valuesOf('added')}, ${postgresNow}
          from added cross join webhook where webhook.is_full = 0;
      end if;
      return null;
    end $$`,
  sql`drop trigger if exists announce_added_plants on plants`,
  sql`
    create trigger announce_added_plants after insert on plants referencing new table as added
    for each statement execute function announce_added_plants()`,
]

/** The start of a tag, short enough for an entry of PostgreSQL's index, of at most 2,704 bytes. */
const startOf = (tag: RawBuilder<unknown>) => sql`substr(${tag}, 1, 200)`

export const postgresDialect: Dialect = {
  compiler: new Kysely({ dialect: new PostgresDialect({ pool: () => Promise.reject() }) }),
  int64: 'bigint',
  tableOptions: sql``,
  tableNames: sql`
    select table_name as name from information_schema.tables
    where table_schema = current_schema() and table_type = 'BASE TABLE'`,
  plantsByTag: sql`${startOf(sql.ref('tag'))}, id`,
  hasTag: tag => sql`${startOf(sql.ref('tag'))} = ${startOf(sql`${tag}::text`)} and tag = ${tag}`,
  now: postgresNow,
  // The trigger exists from the start.
  beginAnnouncing: sql`select`,
  async replaceTrigger(db) {
    for (const statement of announceOnPostgres) await statement.execute(db)
  },
}

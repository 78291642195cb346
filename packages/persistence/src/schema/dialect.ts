import { Kysely, PostgresDialect, type RawBuilder, SqliteDialect, sql } from 'kysely'
import { plantColumns, rowColumns, type Tables, type VersionedRow } from './tables.ts'

/** A statement, and what runs before it in its transaction if a query returns a row. All have the same parameters. */
export interface Preceded {
  readonly last: RawBuilder<unknown>
  /** Without parameters. */
  readonly ifAny: RawBuilder<unknown>
  readonly before: readonly RawBuilder<unknown>[]
}

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
  /**
   * Makes an insert of plants also add a delivery of each added plant for each webhook with room, and count it for the
   * others. An upsert that replaces a plant adds none.
   *
   * @param row its parameters
   */
  readonly announce: (adding: RawBuilder<unknown>, row: VersionedRow) => RawBuilder<unknown> | Preceded
  /** Waits until plants that others are adding are there, and keeps others from adding any until the transaction ends. */
  readonly awaitAdding: RawBuilder<unknown>
  /** Of schema versions 4 and 5, which wrote the outbox. */
  readonly dropTrigger: RawBuilder<unknown>
}

export function columnList(names: readonly string[]): RawBuilder<unknown> {
  return sql.join(names.map(name => sql.ref(name)))
}

const eventColumns = ['version', ...plantColumns]
const outboxColumns = columnList(['webhook', ...eventColumns, 'added_at'])
const eventOfAdded = columnList(eventColumns.map(each => `added.${each}`))

const sqliteNow = sql<bigint>`cast(unixepoch('subsec') * 1000 as integer)`

/**
 * SQLite changes one table with a statement, so two others go before it. They see whether the plant is there, as nobody
 * else writes meanwhile.
 */
const announceOnSqlite: Dialect['announce'] = (last, row) => {
  const given = sql`
    with given (${columnList(rowColumns)}) as (values (${sql.join(rowColumns.map(column => row[column]))})),
    added as (select * from given where not exists (select 1 from plants where plants.id = given.id))`
  return {
    last,
    // Without webhooks, both statements would cost 4 % of the creates, and this query 0.5 %.
    ifAny: sql`select 1 from webhooks`,
    before: [
      sql`
        insert into outbox (${outboxColumns}) ${given}
        select webhooks.id, ${eventOfAdded}, ${sqliteNow} from webhooks, added where is_full = 0`,
      sql`
        ${given} update webhooks set missed = missed + 1 where is_full = 1 and exists (select 1 from added)`,
    ],
  }
}

export const sqliteDialect: Dialect = {
  compiler: new Kysely({ dialect: new SqliteDialect({ database: () => Promise.reject() }) }),
  int64: 'integer',
  tableOptions: sql`strict`,
  tableNames: sql`select name from sqlite_schema where type = 'table'`,
  plantsByTag: sql`tag, id`,
  hasTag: tag => sql`tag = ${tag}`,
  now: sqliteNow,
  announce: announceOnSqlite,
  // Nobody else writes meanwhile.
  awaitAdding: sql`delete from webhooks where false`,
  dropTrigger: sql`drop trigger if exists announce_added_plant`,
}

const postgresNow = sql<bigint>`cast(extract(epoch from statement_timestamp()) * 1000 as bigint)`

/**
 * The same in one statement, which may add thousands of plants. A row that replaced another has the transaction that
 * locked the other in `xmax`. The lock keeps a webhook from being removed in between, and shows it as it is after a
 * concurrent change.
 */
const announceOnPostgres = (adding: RawBuilder<unknown>) => sql`
    with changed as (${adding} returning ${columnList(rowColumns)}, xmax = 0 as is_added),
    added as (select * from changed where is_added),
    webhook as materialized (
      select id, is_full from webhooks where exists (select from added) for key share
    ),
    missed_by as (
      update webhooks set missed = missed + (select count(*) from added)
      from webhook where webhooks.id = webhook.id and webhook.is_full = 1
    ),
    announced as (
      insert into outbox (${outboxColumns})
      select webhook.id, ${eventOfAdded}, ${postgresNow}
      from added cross join webhook where webhook.is_full = 0
    )
    select id from changed`

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
  announce: announceOnPostgres,
  awaitAdding: sql`lock table webhooks in exclusive mode`,
  dropTrigger: sql`
    drop trigger if exists announce_added_plants on plants;
    drop function if exists announce_added_plants()`,
}

import { type Kysely, type RawBuilder, sql } from 'kysely'
import {
  announceOnSqlite,
  databaseTime,
  replaceTriggerOnPostgres,
  replaceTriggerOnSqlite,
} from './announcing.ts'
import type { Tables } from './tables.ts'

/** The differences between the databases in SQL. */
export interface Dialect {
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

export const sqliteDialect: Dialect = {
  int64: 'integer',
  tableOptions: sql`strict`,
  tableNames: sql`select name from sqlite_schema where type = 'table'`,
  plantsByTag: sql`tag, id`,
  hasTag: tag => sql`tag = ${tag}`,
  now: databaseTime.sqlite,
  beginAnnouncing: announceOnSqlite,
  replaceTrigger: replaceTriggerOnSqlite,
}

/** The start of a tag, short enough for an entry of PostgreSQL's index, of at most 2,704 bytes. */
const startOf = (tag: RawBuilder<unknown>) => sql`substr(${tag}, 1, 200)`

export const postgresDialect: Dialect = {
  int64: 'bigint',
  tableOptions: sql``,
  tableNames: sql`
    select table_name as name from information_schema.tables
    where table_schema = current_schema() and table_type = 'BASE TABLE'`,
  plantsByTag: sql`${startOf(sql.ref('tag'))}, id`,
  hasTag: tag => sql`${startOf(sql.ref('tag'))} = ${startOf(sql`${tag}::text`)} and tag = ${tag}`,
  now: databaseTime.postgres,
  // The trigger exists from the start.
  beginAnnouncing: sql`select`,
  replaceTrigger: replaceTriggerOnPostgres,
}

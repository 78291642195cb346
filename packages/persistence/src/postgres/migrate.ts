import { setTimeout as sleep } from 'node:timers/promises'
import { Kysely, NoResultError, PostgresDialect, sql } from 'kysely'
import type pg from 'pg'
import { type Dialect, migrate, readVersion, refuseNewer, schemaVersion } from '../migrations.ts'
import type { ServerOptions } from '../storage.ts'
import type { Tables } from '../tables.ts'
import { connect, wasRolledBack } from './connection.ts'
import { tagStart } from './statements.ts'

/** For a statement of a migration, and for the migrations of others that it waits for. */
const migrationTimeoutMs = 600_000
const attemptsMax = 20

/**
 * Makes the tables if there are none, and brings them up to date; of several processes that start together, one does.
 *
 * @throws Error when the database can't be used, with nothing changed
 */
export async function migratePostgres(options: ServerOptions): Promise<void> {
  const client = await connect(options)
  const db = kyselyOn(client)
  try {
    await checkServer(db)
    for (let attempt = 1; ; attempt++) {
      try {
        if (await isUpToDate(db)) return
        await sql`create table if not exists migration_lock (id integer primary key)`.execute(db)
        await sql`insert into migration_lock values (1) on conflict do nothing`.execute(db)
        return await migrateOnce({ ...options, statementTimeoutMs: migrationTimeoutMs })
      } catch (error) {
        if (attempt === attemptsMax || !wasRaced(error)) throw error
        await sleep(Math.random() * 50 * attempt)
      }
    }
  } finally {
    await client.end()
  }
}

/** So that a process that has nothing to do neither waits nor needs the right to make tables. */
async function isUpToDate(db: Kysely<Tables>): Promise<boolean> {
  const version = await readVersion(db, postgresDialect)
  refuseNewer(version ?? 0)
  return version === schemaVersion
}

/** Kysely on one connection, which stays its owner's to close. */
export function kyselyOn(client: pg.Client): Kysely<Tables> {
  return new Kysely<Tables>({
    dialect: new PostgresDialect({
      pool: {
        connect: async () => ({ query: client.query.bind(client), release() {} }) as never,
        end: async () => {},
        options: {},
      },
    }),
  })
}

/**
 * A row is the lock, because the three databases that this is for share no other one. It is locked on a connection of
 * its own, because in two of them making a table ends the transaction.
 */
async function migrateOnce(options: ServerOptions): Promise<void> {
  await using connections = new AsyncDisposableStack()
  const connected = async () => connections.adopt(await connect(options), client => client.end())
  const holder = await connected()
  // Behind a pooler there may be no other one.
  const maker = holder.isPooled ? holder : await connected()
  await holder.query(holder.begin())
  await holder.query('select id from migration_lock for update')
  if (maker !== holder) await maker.query(maker.begin())
  await migrate(kyselyOn(maker), postgresDialect)
  await maker.query('commit')
}

/**
 * `if not exists` does not hold against another transaction that makes the same table at the same moment, and where
 * making a table ends the transaction, the version is there later than its table.
 */
function wasRaced(error: unknown): boolean {
  const { code } = error as { code?: string }
  return wasRolledBack(error) || duplicates.has(code) || error instanceof NoResultError
}

/** Of a key in the catalogue, a table and a type: how far the other has come when this one looks. */
const duplicates: ReadonlySet<string | undefined> = new Set(['23505', '42P07', '42710'])

/** @throws Error when what the server promises is less than what the store promises */
async function checkServer(db: Kysely<Tables>): Promise<void> {
  const { rows } = await sql<{ encoding: string; fsync: string | null }>`
    select current_setting('server_encoding') as encoding, current_setting('fsync', true) as fsync
  `.execute(db)
  if (rows[0]?.encoding !== 'UTF8') throw new Error(`its encoding is ${rows[0]?.encoding}, and must be UTF8`)
  if (rows[0].fsync === 'off') throw new Error('it runs with fsync off: what it answered could be lost')
}

export const postgresDialect: Dialect = {
  int64: 'bigint',
  tableOptions: sql``,
  plantsByTag: sql`${tagStart(sql.ref('tag'))}, id`,
  async tableNames(db) {
    const { rows } = await sql<{ table_name: string }>`
      select table_name from information_schema.tables
      where table_schema = current_schema() and table_type = 'BASE TABLE' and table_name <> 'migration_lock'
    `.execute(db)
    return rows.map(({ table_name }) => table_name)
  },
}

import { setTimeout as sleep } from 'node:timers/promises'
import { Kysely, NoResultError, PostgresDialect, sql } from 'kysely'
import type pg from 'pg'
import { type Dialect, isStore, knownVersion, migrate, schemaVersion } from '../migrations.ts'
import type { ServerOptions } from '../storage.ts'
import type { Tables } from '../tables.ts'
import { connect } from './connection.ts'
import { tagStart } from './statements.ts'
import { wasRolledBack } from './transaction.ts'

export const dialect: Dialect = {
  int64: 'bigint',
  tableOptions: sql``,
  plantsByTag: sql`${tagStart(sql.ref('tag'))}, id`,
}

/** For a statement of a migration, and for migrations of other processes. */
const migrationTimeoutMs = 600_000
const attemptsMax = 20

/** Creates or migrates the tables if needed. Of several processes that start together, one does it. */
export async function migratePostgres(options: ServerOptions): Promise<void> {
  await using client = await connect(options)
  await checkServer(client)
  for (let attempt = 1; ; attempt++) {
    try {
      // First, so that an up-to-date store needs neither the lock nor the right to create tables.
      if ((await findVersion(client)) === schemaVersion) return
      await client.query('create table if not exists migration_lock (id integer primary key)')
      await client.query('insert into migration_lock values (1) on conflict do nothing')
      return await migrateOnce({ ...options, statementTimeoutMs: migrationTimeoutMs })
    } catch (error) {
      if (attempt === attemptsMax || !wasRaced(error)) throw error
      await sleep(Math.random() * 50 * attempt)
    }
  }
}

/**
 * Returns the version of a store, or `undefined` if it is empty. Throws like {@link isStore} and {@link knownVersion}.
 */
export async function findVersion(client: pg.Client): Promise<number | undefined> {
  const { rows } = await client.query<{ table_name: string }>(`
    select table_name from information_schema.tables
    where table_schema = current_schema() and table_type = 'BASE TABLE' and table_name <> 'migration_lock'`)
  if (!isStore(rows.map(({ table_name }) => table_name))) return undefined
  const found = kyselyOn(client).selectFrom('schema_version').select('version')
  const { version } = await found.executeTakeFirstOrThrow()
  return knownVersion(Number(version))
}

/** Returns Kysely on one connection, which the caller closes. */
function kyselyOn(client: pg.Client): Kysely<Tables> {
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
 * Migrates under a row lock, the only lock that PostgreSQL, CockroachDB and YugabyteDB share. A second connection
 * creates the tables, because in two of them that ends the transaction.
 */
async function migrateOnce(options: ServerOptions): Promise<void> {
  await using connections = new AsyncDisposableStack()
  const holder = connections.use(await connect(options))
  // A pooler may have no second connection.
  const maker = holder.isPooled ? holder : connections.use(await connect(options))
  await holder.query(holder.begin())
  await holder.query('select id from migration_lock for update')
  if (maker !== holder) await maker.query(maker.begin())
  const found = await findVersion(maker)
  if (found !== schemaVersion) await migrate(kyselyOn(maker), dialect, found)
  await maker.query('commit')
}

/**
 * Returns whether another process was creating the tables: `if not exists` fails if both do so at the same moment.
 * Where creating a table ends the transaction, the version appears later than its table.
 */
function wasRaced(error: unknown): boolean {
  const { code } = error as { code?: string }
  return wasRolledBack(error) || duplicates.has(code) || error instanceof NoResultError
}

/** Of a catalogue key, a table and a type. */
const duplicates: ReadonlySet<string | undefined> = new Set(['23505', '42P07', '42710'])

/** @throws Error if the server's guarantees are weaker than the store's */
async function checkServer(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ encoding: string; fsync: string | null }>(
    "select current_setting('server_encoding') as encoding, current_setting('fsync', true) as fsync",
  )
  if (rows[0]?.encoding !== 'UTF8') throw new Error(`its encoding must be UTF8, not ${rows[0]?.encoding}`)
  if (rows[0].fsync === 'off') throw new Error('its fsync is off: acknowledged changes could be lost')
}

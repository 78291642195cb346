import { Kysely, PostgresDialect } from 'kysely'
import type pg from 'pg'
import type { Entities } from '../entity.ts'
import { bringUpToDate, findVersion, schemaVersionOf } from '../migrations.ts'
import { postgresDialect } from '../statements/dialect.ts'
import type { PostgresOptions } from '../storage.ts'
import { createPool, retrying } from './connection.ts'

/** For a statement of a migration, and for migrations of other processes. */
const migrationTimeoutMs = 600_000

/** Any number, the same in every release: PostgreSQL has one such lock for each number in each database. */
const migrationLock = 4_815_162_342

/**
 * Creates or migrates the tables if needed. Of several processes that start together, one does it. Resolves to the
 * version that it found, or to `undefined` if it created them.
 */
export async function migratePostgres(
  options: PostgresOptions,
  entities: Entities,
): Promise<number | undefined> {
  const found = await checkedVersion(options, entities)
  if (found === schemaVersionOf(entities)) {
    return found
  }
  return retrying(migrationTimeoutMs, () =>
    migrateOnce({ ...options, statementTimeoutMs: migrationTimeoutMs }, entities),
  )
}

/** First, so that an up-to-date store needs neither the lock nor the right to create tables. */
async function checkedVersion(
  options: PostgresOptions,
  entities: Entities,
): Promise<number | undefined> {
  await using pool = createPool(options, 1)
  await using client = await pool.begin('read only')
  await checkServer(client)
  return await findVersionOn(client, entities)
}

async function migrateOnce(
  options: PostgresOptions,
  entities: Entities,
): Promise<number | undefined> {
  await using pool = createPool(options, 1)
  await using client = await pool.begin()
  await client.query(`select pg_advisory_xact_lock(${migrationLock})`)
  const found = await bringUpToDate(entities, kyselyOn(client), postgresDialect)
  await client.query('commit')
  return found
}

/** Throws like {@link findVersion}. */
export function findVersionOn(
  client: pg.Client,
  entities: Entities,
): Promise<number | undefined> {
  return findVersion(entities, kyselyOn(client), postgresDialect)
}

/** Returns Kysely on one connection, which the caller closes. */
function kyselyOn(client: pg.Client): Kysely<unknown> {
  return new Kysely<unknown>({
    dialect: new PostgresDialect({
      pool: {
        connect: async () =>
          ({ query: client.query.bind(client), release() {} }) as never,
        end: async () => {},
        options: {},
      },
    }),
  })
}

/** @throws Error if the server's guarantees are weaker than the store's */
async function checkServer(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ encoding: string; fsync: string | null }>(
    "select current_setting('server_encoding') as encoding, current_setting('fsync', true) as fsync",
  )
  if (rows[0]?.encoding !== 'UTF8') {
    throw new Error(`its encoding must be UTF8, not ${rows[0]?.encoding}`)
  }
  if (rows[0].fsync === 'off') {
    throw new Error('its fsync is off: acknowledged changes could be lost')
  }
}

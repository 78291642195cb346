import { Kysely, PostgresDialect } from 'kysely'
import type { Entities } from '../entity.ts'
import { bringUpToDate, findVersion, schemaVersionOf } from '../migrations.ts'
import { postgresDialect } from '../statements/dialect.ts'
import type { PostgresOptions } from '../storage.ts'
import type { Connection, WarningListener } from './connection.ts'
import { ConnectionPool } from './connection-pool.ts'
import { retrying } from './retrying.ts'
import { changeRights, checkMigrationRights, checkRights } from './rights.ts'
import { findStoreSchema, findStoreSchemas, useSchema } from './store-schema.ts'

/** For a statement of a migration, and for migrations of other processes. */
const migrationTimeoutMs = 600_000

/** Any number, the same in every release: PostgreSQL has one such lock for each number in each database. */
const migrationLock = 4_815_162_342

/** A store as it was found. */
export interface FoundStore {
  readonly schema: string
  /** Absent if there is no store yet. */
  readonly version: number | undefined
}

/**
 * Creates or migrates the tables if needed. Of several processes that start together, one does it.
 * Resolves to what it found.
 */
export async function migratePostgres(
  options: PostgresOptions,
  entities: Entities,
  onWarning: WarningListener,
): Promise<FoundStore> {
  // First, so that an up-to-date store needs neither the lock nor the right to create tables.
  const found = await lookAt(options, connection => findStore(connection, entities))
  if (found.version === schemaVersionOf(entities)) {
    return found
  }
  const patient = { ...options, statementTimeoutMs: migrationTimeoutMs }
  return retrying(migrationTimeoutMs, () => migrateOnce(patient, entities, onWarning))
}

/** Resolves to what {@link migratePostgres} would find. @throws Error also if it would fail for want of rights */
export function planPostgres(
  options: PostgresOptions,
  entities: Entities,
): Promise<FoundStore & { readonly otherSchemas: readonly string[] }> {
  return lookAt(options, async connection => {
    const found = await findStore(connection, entities)
    const tables = tablesOf(entities)
    const otherSchemas =
      found.version === undefined ? await findStoreSchemas(connection, entities) : []
    if (found.version !== schemaVersionOf(entities)) {
      await checkMigrationRights(connection, ['schema_version', ...tables])
    }
    await checkRights(connection, tables, changeRights)
    return { ...found, otherSchemas }
  })
}

/**
 * Finds the store, and lets the rest of the transaction use no other schema.
 *
 * @throws Error like {@link findStoreSchema} and {@link findVersion}, or if a table may not be read
 */
export async function findStore(
  connection: Connection,
  entities: Entities,
): Promise<FoundStore> {
  const schema = await findStoreSchema(connection, entities)
  await useSchema(connection, schema)
  if (schema.hasStore) {
    await checkReadable(connection, entities)
  }
  const version = await findVersion(entities, kyselyOn(connection), postgresDialect)
  return { schema: schema.name, version }
}

/** A dump that another role restored has tables that this one may not read. */
async function checkReadable(connection: Connection, entities: Entities): Promise<void> {
  try {
    await checkRights(connection, ['schema_version'], ['select'])
  } catch {
    await checkRights(connection, ['schema_version', ...tablesOf(entities)], ['select'])
  }
}

function tablesOf(entities: Entities): readonly string[] {
  return Object.values(entities).flatMap(({ tables }) => tables)
}

async function lookAt<Result>(
  options: PostgresOptions,
  look: (connection: Connection) => Promise<Result>,
): Promise<Result> {
  await using pool = new ConnectionPool(options, 1)
  await using connection = await pool.begin('read only')
  await checkServer(connection)
  return await look(connection)
}

async function migrateOnce(
  options: PostgresOptions,
  entities: Entities,
  onWarning: WarningListener,
): Promise<FoundStore> {
  await using pool = new ConnectionPool(options, 1, onWarning)
  await using connection = await pool.begin()
  await connection.query(`select pg_advisory_xact_lock(${migrationLock})`)
  const found = await findStore(connection, entities)
  if (found.version !== schemaVersionOf(entities)) {
    await checkMigrationRights(connection, ['schema_version', ...tablesOf(entities)])
  }
  await bringUpToDate(entities, kyselyOn(connection), postgresDialect)
  await connection.commit()
  return found
}

/** Returns Kysely on one connection, which the caller closes. */
function kyselyOn(connection: Connection): Kysely<unknown> {
  const client = { query: connection.query.bind(connection), release() {} }
  return new Kysely<unknown>({
    dialect: new PostgresDialect({
      pool: {
        // Kysely only calls `query` with a text and values.
        connect: async () => client as never,
        end: async () => {},
        options: {},
      },
    }),
  })
}

/** @throws Error if the server's guarantees are weaker than the store's */
async function checkServer(connection: Connection): Promise<void> {
  const { rows } = await connection.query<{ encoding: string; fsync: string | null }>(
    "select current_setting('server_encoding') as encoding, current_setting('fsync', true) as fsync",
  )
  if (rows[0]?.encoding !== 'UTF8') {
    throw new Error(`its encoding must be UTF8, not ${rows[0]?.encoding}`)
  }
  if (rows[0].fsync === 'off') {
    throw new Error('its fsync is off: acknowledged changes could be lost')
  }
}

import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import type { Entities } from '../compile-entities.ts'
import {
  bringUpToDate,
  knownVersion,
  refuseMigration,
  schemaVersionOf,
} from '../migrations.ts'
import { postgresDialect } from '../statements/dialect.ts'
import type { PostgresOptions } from '../types.ts'
import type { Connection } from './connection.ts'
import { ConnectionPool } from './connection-pool.ts'
import { retryRolledBack } from './retry.ts'
import {
  checkMigrationRights,
  findMissingRights,
  refuseMissing,
  serverRights,
} from './rights.ts'
import type { WarningListener } from './server-warnings.ts'
import { findStoreSchema, findStoreSchemas } from './store-schema.ts'

/** How long a statement of a migration may take, and the migration of another process. */
const migrationTimeoutMs = 600_000

/** The number of the lock that migrations take. It must be the same in every release. */
const migrationLock = 4_815_162_342

const versionTable = 'schema_version'

/**
 * Creates or migrates the tables if needed. Of several processes that start together, one
 * does it. Resolves to what it found.
 *
 * @param migrates as in `EngineOptions`
 */
export async function migratePostgres(
  options: PostgresOptions,
  entities: Entities,
  migrates: boolean,
  onWarning: WarningListener,
) {
  // An up-to-date store needs neither the lock nor the right to create tables.
  const found = await withReadTransaction(
    options,
    connection => findStore(connection, entities),
    onWarning,
  )
  if (found.versionBefore === schemaVersionOf(entities)) {
    return found
  }
  if (!migrates) {
    refuseMigration(entities, found.versionBefore)
  }
  const patient = { ...options, statementTimeoutMs: migrationTimeoutMs }
  return retryRolledBack(migrationTimeoutMs, () =>
    migrateOnce(patient, entities, onWarning),
  )
}

/**
 * Resolves to what {@link migratePostgres} would find, and to the schemas outside the
 * search path that have a store, if this one does not.
 *
 * @throws Error also if the role lacks a right that a migration or the server needs
 */
export function planPostgres(options: PostgresOptions, entities: Entities) {
  return withReadTransaction(options, async connection => {
    const found = await findStore(connection, entities)
    if (found.versionBefore !== schemaVersionOf(entities)) {
      await checkMigrationRights(connection, tablesOf(entities))
    }
    if (found.versionBefore === undefined) {
      const otherSchemas = await findStoreSchemas(connection, entities)
      return { ...found, otherSchemas }
    }
    const [, ...entityTables] = tablesOf(entities)
    refuseMissing(await findMissingRights(connection, entityTables, serverRights))
    return found
  })
}

/**
 * Finds the schema that has the store, or would get it, and the version of the store, if
 * there is one. Lets the rest of the transaction use no other schema.
 *
 * @throws Error like {@link findStoreSchema} and {@link knownVersion}, or if a table may
 *   not be read
 */
export async function findStore(connection: Connection, entities: Entities) {
  const { name: schema, hasStore } = await findStoreSchema(connection, entities)
  const path = pg.escapeIdentifier(schema)
  await connection.ask("select set_config('search_path', $1, true)", [path])
  if (!hasStore) {
    return { schema, versionBefore: undefined }
  }

  // After a dump that another role restored, the role may read no table.
  const missing = await findMissingRights(connection, tablesOf(entities), ['select'])
  if (missing.some(right => right.missing === `select on ${versionTable}`)) {
    refuseMissing(missing)
  }
  const { rows } = await connection.ask(`select version from ${versionTable}`)
  return { schema, versionBefore: knownVersion(entities, rows[0]?.['version']) }
}

/** Returns the names of all tables. The one with the version is the first. */
function tablesOf(entities: Entities): readonly string[] {
  const entityTables = Object.values(entities).flatMap(({ tables }) => tables)
  return [versionTable, ...entityTables]
}

/**
 * Runs work in a transaction that can only read.
 *
 * @throws Error like {@link checkServer}
 */
async function withReadTransaction<Result>(
  options: PostgresOptions,
  work: (connection: Connection) => Promise<Result>,
  onWarning?: WarningListener,
) {
  await using pool = new ConnectionPool(options, 1, onWarning)
  await using connection = await pool.begin('read only')
  await checkServer(connection)
  return await work(connection)
}

async function migrateOnce(
  options: PostgresOptions,
  entities: Entities,
  onWarning: WarningListener,
) {
  await using connections = new ConnectionPool(options, 1, onWarning)
  await using connection = await connections.begin()
  await connection.ask(`select pg_advisory_xact_lock(${migrationLock})`)
  const found = await findStore(connection, entities)
  if (found.versionBefore !== schemaVersionOf(entities)) {
    await checkMigrationRights(connection, tablesOf(entities))
  }
  // Kysely only connects, and calls `query` with a text and values.
  const client = { query: connection.ask.bind(connection), release() {} }
  const pool = { connect: async () => client } as never
  const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) })
  await bringUpToDate(entities, db, postgresDialect, found.versionBefore)
  await connection.ask('commit')
  connection.refuseUnconfirmed()
  return found
}

/** @throws Error if the server's guarantees are weaker than the store's */
async function checkServer(connection: Connection) {
  const settings = await connection.askRow<{ encoding: string; fsync: string | null }>(
    `select current_setting('server_encoding') as encoding,
      current_setting('fsync', true) as fsync`,
  )
  if (settings.encoding !== 'UTF8') {
    throw new Error(`its encoding must be UTF8, not ${settings.encoding}`)
  }
  if (settings.fsync === 'off') {
    throw new Error('its fsync is off: acknowledged changes could be lost')
  }
}

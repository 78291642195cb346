import { closeSync, existsSync, openSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import Sqlite, { type Database } from 'better-sqlite3'
import { Kysely, SqliteDialect } from 'kysely'
import { compileEntities, type Entities } from '../compile-entities.ts'
import { isDamage, NoStoreError, reasonOf } from '../errors.ts'
import {
  bringUpToDate,
  isStore,
  knownVersion,
  refuseMigration,
  schemaVersionOf,
} from '../migrations.ts'
import type { ReadTransaction } from '../snapshot.ts'
import { sqliteDialect } from '../statements/dialect.ts'
import type { EngineOptions } from '../types.ts'
import { closeOnError, openConnection, prepareChange, readColumn } from './connection.ts'
import { forgetBackup } from './last-backup.ts'
import {
  createFileLike,
  createFolder,
  hideFromOthers,
  isCreatedBy,
  privateMode,
} from './private-file.ts'
import { createStoreId, setStoreId, storeIdOf } from './store-id.ts'
import {
  refuseForeignWal,
  refuseSecondPath,
  refuseWalElsewhere,
  statIfAny,
} from './store-path.ts'
import { withReason } from './with-reason.ts'

/**
 * The last migration in this thread. They run one at a time, because waiting for a lock
 * blocks the thread.
 */
let lastMigration: Promise<unknown> = Promise.resolve()

type MigrationOptions = Required<Pick<EngineOptions, 'migrates' | 'lockTimeoutMs'>>

/**
 * Creates a store's file, folders and tables as needed, and migrates them. Resolves to
 * the version that the store had.
 *
 * @throws Error if the file is not a store, a newer one, or an older one that may not be
 *   migrated. The file is then unchanged
 */
export async function migrateSqlite(
  file: string,
  entities: Entities,
  options: MigrationOptions,
) {
  refuseForeignWal(file)
  createFileIfNeeded(file)
  refuseSecondPath(file)

  const migration = lastMigration.then(() => migrateOnce(file, entities, options))
  lastMigration = migration.catch(() => {})
  const versionBefore = await migration
  hideFromOthers(file)
  return versionBefore
}

/** @throws Error with the system's reason if the file may not be written */
function createFileIfNeeded(file: string) {
  const stat = statIfAny(file)
  const isSomethingElse = stat !== undefined && !stat.isFile() && !stat.isDirectory()
  // Opening a pipe would wait forever.
  if (isSomethingElse) {
    throw new Error('it is not a file')
  }

  const folder = dirname(file)
  createFolder(folder)
  const isNew = isCreatedBy(() => createFileLike(file, folder))
  if (isNew) {
    forgetBackup(file)
  } else {
    closeSync(openSync(file, 'a', privateMode))
  }
}

async function migrateOnce(
  file: string,
  entities: Entities,
  { lockTimeoutMs, migrates }: MigrationOptions,
) {
  const connection = openConnection(file, { timeout: lockTimeoutMs })
  try {
    // SQLite would take such a file for an empty one, and overwrite it.
    if (statSync(file).size === 1) {
      throw new Sqlite.SqliteError('file is not a database', 'SQLITE_NOTADB')
    }

    // The transaction begins even if there is nothing to do, so that a lock of another
    // process is noticed now and not at the first change.
    connection.exec('begin immediate')
    const versionBefore = checkedVersion(entities, connection)
    if (!migrates) {
      refuseMigration(entities, versionBefore)
    }
    const dialect = new SqliteDialect({ database: connection })
    const db = new Kysely<unknown>({ dialect })
    await bringUpToDate(entities, db, sqliteDialect, versionBefore)
    if (storeIdOf(connection) === 0) {
      setStoreId(connection, createStoreId())
    }
    connection.exec('commit')
    return versionBefore
  } finally {
    // Closing rolls back a transaction that is still open.
    connection.close()
  }
}

/**
 * Opens a store or a backup to read it as of the first read, and changes no byte of it.
 *
 * @throws Error if the WAL beside it is that of another store, or its own WAL may be
 *   beside another path
 */
export function openToRead(file: string): Database {
  refuseForeignWal(file)
  refuseWalElsewhere(file)

  // Open read-only if a crash left a WAL, because closing a writable connection would
  // merge it. Otherwise open writable: closing then removes the empty WAL that opening
  // creates.
  const readonly = existsSync(`${file}-wal`) || existsSync(`${file}-journal`)
  const connection = openConnection(file, { fileMustExist: true, readonly })
  return closeOnError(connection, () => {
    connection.pragma('query_only = on')
    return connection.exec('begin')
  })
}

/** A store or a backup of any known version, as of one moment. */
export interface SqliteSnapshot extends ReadTransaction {
  readonly connection: Database
}

/**
 * Opens a store of any known version like {@link openToRead}.
 *
 * @throws NoStoreError, or Error if the file is not a store, or a newer one
 */
export function openReadOnly(file: string, entities: Entities) {
  const open = () =>
    closeOnError(openToRead(file), connection => snapshotOf(connection, entities))
  return withReason(open, file)
}

function snapshotOf(connection: Database, entities: Entities): SqliteSnapshot {
  const schemaVersion = checkedVersion(entities, connection)
  if (schemaVersion === undefined) {
    throw new NoStoreError('it is empty')
  }
  return {
    connection,
    schemaVersion,
    compiled: compileEntities(entities, sqliteDialect),
    query: (sql, parameters = []) =>
      withReason(() =>
        connection.prepare<unknown[], Record<string, unknown>>(sql).all(...parameters),
      ),
    async [Symbol.asyncDispose]() {
      connection.close()
    },
  }
}

/**
 * Returns the version of a store, or `undefined` if it is empty.
 *
 * @throws Error if the tables belong to another program or have an unknown version, and
 *   if there is a trigger, which would run within our changes, or a view
 */
function checkedVersion(entities: Entities, connection: Database) {
  const tables = readColumn(
    connection,
    "select name from sqlite_schema where type = 'table'",
  )
  let version: number | undefined
  if (isStore(entities, tables)) {
    const select = connection.prepare('select version from schema_version').pluck()
    version = knownVersion(entities, select.get())
  }

  const others = readColumn(
    connection,
    "select type || ' ' || name from sqlite_schema where type not in ('table', 'index')",
  )
  if (others.length > 0) {
    throw new Error(
      `it contains ${others.join(', ')}, and a store has only tables and indexes`,
    )
  }
  if (version === schemaVersionOf(entities)) {
    prepareEvery(entities, connection)
  }
  return version
}

/** @throws Error if the tables lack something that a statement needs */
function prepareEvery(entities: Entities, connection: Database) {
  const { names, changeStatements } = compileEntities(entities, sqliteDialect)
  try {
    for (const { sql } of names.keys()) {
      connection.prepare(sql)
    }
    for (const change of changeStatements.values()) {
      prepareChange(connection, change)
    }
  } catch (cause) {
    if (isDamage(cause)) {
      throw cause
    }
    throw new Error(`its schema is not of this release: ${reasonOf(cause)}`, { cause })
  }
}

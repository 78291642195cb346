import { closeSync, existsSync, openSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import Database from 'better-sqlite3'
import { Kysely, SqliteDialect } from 'kysely'
import { compileEntities, type Entities } from '../entity.ts'
import { isDamage, NoStoreError } from '../errors.ts'
import { bringUpToDate, findVersion, schemaVersionOf } from '../migrations.ts'
import type { ReadTransaction } from '../snapshot.ts'
import { sqliteDialect } from '../statements/dialect.ts'
import {
  closeOnError,
  openConnection,
  prepareAll,
  prepareChange,
  reasonOf,
  withReason,
} from './connection.ts'
import { forgetBackup } from './last-backup.ts'
import {
  createFileLike,
  createFolder,
  hideFromOthers,
  isCreatedBy,
  privateMode,
} from './private-file.ts'
import { giveStoreId } from './store-id.ts'
import { refuseForeignWal, refuseSecondPath, refuseWalElsewhere } from './store-path.ts'

/** One at a time in this thread, as waiting for a lock blocks the thread. */
let lastTurn: Promise<unknown> = Promise.resolve()

/**
 * Creates a store's file, folders and tables as needed. Resolves like {@link bringUpToDate}.
 *
 * @throws Error if the file is not a store, or a newer one; it is then unchanged
 */
export async function migrateSqlite(
  file: string,
  entities: Entities,
  lockTimeoutMs: number,
): Promise<number | undefined> {
  const stat = statSync(file, { throwIfNoEntry: false })
  // Opening a pipe would wait for ever.
  if (stat && !stat.isFile() && !stat.isDirectory()) {
    throw new Error('it is not a file')
  }
  const folder = dirname(file)
  createFolder(folder)
  if (isCreatedBy(() => createFileLike(file, folder))) {
    forgetBackup(file)
  } else {
    closeSync(openSync(file, 'a', privateMode))
  }
  refuseSecondPath(file)
  refuseForeignWal(file)
  const turn = lastTurn.then(() => migrateOnce(file, entities, lockTimeoutMs))
  lastTurn = turn.catch(() => {})
  const found = await turn
  hideFromOthers(file)
  return found
}

async function migrateOnce(
  file: string,
  entities: Entities,
  timeout: number,
): Promise<number | undefined> {
  const connection = openConnection(file, { timeout })
  try {
    refuseOldSqlite(connection)
    // SQLite would take such a file for an empty one, and overwrite it.
    if (statSync(file).size === 1) {
      throw new Database.SqliteError('file is not a database', 'SQLITE_NOTADB')
    }
    // Even if nothing is to be done, so that a lock of another process is noticed now and not at the first
    // change.
    connection.exec('begin immediate')
    const found = await checkedVersion(entities, connection)
    await bringUpToDate(entities, kyselyOn(connection), sqliteDialect)
    giveStoreId(connection)
    connection.exec('commit')
    return found
  } finally {
    // Takes an open transaction back.
    connection.close()
  }
}

/**
 * SQLite 3.7.0 to 3.51.2 can skip committed pages after a checkpoint that meets another program's commit
 * (sqlite.org/wal.html, "The WAL-Reset Bug").
 */
const oldestSqlite = '3.51.3'

function refuseOldSqlite(connection: Database.Database): void {
  const version = connection
    .prepare<[], string>('select sqlite_version()')
    .pluck()
    .get() as string
  if (version.localeCompare(oldestSqlite, 'en', { numeric: true }) < 0) {
    throw new Error(
      `SQLite ${version} can lose committed changes: ${oldestSqlite} or newer is required`,
    )
  }
}

/**
 * Opens a store or a backup to read it as of the first read, and changes no byte of it.
 *
 * @throws Error if the WAL beside it is not its own, or its own may be beside another path
 */
export function openToRead(file: string): Database.Database {
  refuseForeignWal(file)
  refuseWalElsewhere(file)
  // Otherwise closing would merge a WAL that a crash left. Without one, it is what removes an empty one.
  const readonly = ['-wal', '-journal'].some(suffix => existsSync(file + suffix))
  return closeOnError(
    openConnection(file, { fileMustExist: true, readonly }),
    connection => {
      connection.pragma('query_only = on')
      return connection.exec('begin')
    },
  )
}

/**
 * Opens a store of any known version like {@link openToRead}.
 *
 * @throws NoStoreError, or Error if the file is not a store, or a newer one
 */
export function openReadOnly<Entered extends Entities>(
  file: string,
  entities: Entered,
): Promise<ReadTransaction<Entered> & { readonly connection: Database.Database }> {
  return closeOnError(openToRead(file), async connection => {
    const schemaVersion = await checkedVersion(entities, connection)
    if (schemaVersion === undefined) {
      throw new NoStoreError('it is empty')
    }
    return {
      connection,
      schemaVersion,
      compiled: compileEntities(entities, sqliteDialect),
      query: (sql: string, parameters: readonly unknown[] = []) =>
        withReason(() => connection.prepare<unknown[], object>(sql).all(...parameters)),
      async [Symbol.asyncDispose]() {
        connection.close()
      },
    }
  })
}

/**
 * Returns the version of a store, or `undefined` if it is empty.
 *
 * @throws Error like {@link findVersion}, and for a trigger or a view, which would run within our changes
 */
async function checkedVersion(entities: Entities, connection: Database.Database) {
  const version = await findVersion(entities, kyselyOn(connection), sqliteDialect)
  const others = connection
    .prepare<[], string>(
      "select type || ' ' || name from sqlite_schema where type not in ('table', 'index')",
    )
    .pluck()
    .all()
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
function prepareEvery(entities: Entities, connection: Database.Database): void {
  const { names, changeStatements } = compileEntities(entities, sqliteDialect)
  try {
    prepareAll(connection, names.keys())
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

function kyselyOn(database: Database.Database): Kysely<unknown> {
  return new Kysely<unknown>({ dialect: new SqliteDialect({ database }) })
}

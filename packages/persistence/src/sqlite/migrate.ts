import { closeSync, existsSync, mkdirSync, openSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type Database from 'better-sqlite3'
import { Kysely, SqliteDialect, sql } from 'kysely'
import { type Dialect, isStore, knownVersion, migrate, schemaVersion } from '../migrations.ts'
import { syncFile } from '../replace-file.ts'
import type { Tables } from '../tables.ts'
import { openConnection } from './connection.ts'

const dialect: Dialect = { int64: 'integer', tableOptions: sql`strict`, plantsByTag: sql`tag, id` }

/** Creates the file of a store, its folders and tables where there are none. Throws as {@link bringUpToDate}. */
export async function migrateSqlite(file: string): Promise<void> {
  createFolder(dirname(resolve(file)))
  closeSync(openSync(file, 'a', privateMode))
  const connection = openConnection(file)
  try {
    await bringUpToDate(connection)
  } finally {
    connection.close()
  }
}

/** One migration at a time in this thread: a connection that waits for another's lock blocks the thread. */
let lastTurn: Promise<void> = Promise.resolve()

/** @throws Error when the file is no store, or a newer one; it is then left as it was */
export function bringUpToDate(connection: Database.Database): Promise<void> {
  const turn = lastTurn.then(async () => {
    // SQLite takes such a file for an empty one, and overwrites it.
    if (!connection.memory && statSync(connection.name).size === 1) throw new Error('file is not a database')
    // Also where nothing is to be done: a lock that another process keeps is found now, not by the first change.
    connection.exec('begin immediate')
    try {
      const found = findVersion(connection)
      if (found === schemaVersion) return
      const db = new Kysely<Tables>({ dialect: new SqliteDialect({ database: connection }) })
      await migrate(db, dialect, found)
      connection.exec('commit')
    } finally {
      if (connection.inTransaction) connection.exec('rollback')
    }
  })
  lastTurn = turn.catch(() => {})
  return turn
}

/** Returns the version of a store; `undefined` when it is empty. Throws as {@link isStore} and {@link knownVersion}. */
export function findVersion(connection: Database.Database): number | undefined {
  const tables = connection.prepare("select name from sqlite_schema where type = 'table'").pluck().all()
  return isStore(tables as string[]) ? knownVersion(versionOf(connection)) : undefined
}

export function versionOf(connection: Database.Database): number {
  return Number(connection.prepare('select version from schema_version').pluck().get())
}

/** For the server's user alone, as a store holds hashes of tokens. SQLite gives its log the mode of the file. */
export const privateMode = 0o600

/** A new folder is lost with the power unless the one above it is fsynced. */
export function createFolder(folder: string): void {
  if (existsSync(folder)) return
  createFolder(dirname(folder))
  try {
    // Not `recursive`: below a folder that takes none, such as /proc, Node would try for ever.
    mkdirSync(folder)
  } catch (error) {
    if ((error as { code?: string }).code !== 'EEXIST') throw error
  }
  syncFile(dirname(folder))
}

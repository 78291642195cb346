import { chmodSync, closeSync, existsSync, mkdirSync, openSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import Database from 'better-sqlite3'
import { Kysely, SqliteDialect, sql } from 'kysely'
import { type Dialect, isStore, knownVersion, migrate, schemaVersion } from '../migrations.ts'
import { syncFile } from '../replace-file.ts'
import { logSuffixes } from '../store-url.ts'
import type { Tables } from '../tables.ts'
import { openConnection, throwPlainly } from './connection.ts'

export const dialect: Dialect = { int64: 'integer', tableOptions: sql`strict`, plantsByTag: sql`tag, id` }

/** Creates a store's file, folders and tables as needed. Resolves and throws like {@link bringUpToDate}. */
export async function migrateSqlite(file: string): Promise<number | undefined> {
  createFolder(dirname(resolve(file)))
  closeSync(openSync(file, 'a', privateMode))
  hideFromOthers(file)
  const connection = openConnection(file)
  try {
    return await bringUpToDate(connection).catch(throwPlainly)
  } finally {
    connection.close()
  }
}

/** One migration at a time in this thread, as waiting for a lock blocks the thread. */
let lastTurn: Promise<unknown> = Promise.resolve()

/**
 * Resolves to the version that it found, or to `undefined` if it created the store.
 *
 * @throws Error if the file is not a store, or a newer one; it is then unchanged
 */
export function bringUpToDate(connection: Database.Database): Promise<number | undefined> {
  const turn = lastTurn.then(async () => {
    // SQLite would take such a file for an empty one, and overwrite it.
    if (statSync(connection.name).size === 1)
      throw new Database.SqliteError('file is not a database', 'SQLITE_NOTADB')
    // Even if nothing is to be done, so that a lock of another process is noticed now and not at the first
    // change.
    connection.exec('begin immediate')
    try {
      const found = findVersion(connection)
      if (found === schemaVersion) return found
      const db = new Kysely<Tables>({ dialect: new SqliteDialect({ database: connection }) })
      await migrate(db, dialect, found)
      connection.exec('commit')
      return found
    } finally {
      if (connection.inTransaction) connection.exec('rollback')
    }
  })
  lastTurn = turn.catch(() => {})
  return turn
}

/**
 * Returns the version of a store, or `undefined` if it is empty. Throws like {@link isStore} and {@link knownVersion}.
 */
export function findVersion(connection: Database.Database): number | undefined {
  const tables = connection.prepare("select name from sqlite_schema where type = 'table'").pluck().all()
  return isStore(tables as string[]) ? knownVersion(versionOf(connection)) : undefined
}

export function versionOf(connection: Database.Database): number {
  return Number(connection.prepare('select version from schema_version').pluck().get())
}

/** Only for the server's user, as a store contains hashes of tokens. The log gets the same mode. */
export const privateMode = 0o600

/** Closes a store of an earlier version, or one restored from it, to everybody but its owner and group. */
export function hideFromOthers(file: string): void {
  for (const path of ['', ...logSuffixes].map(suffix => file + suffix).filter(each => existsSync(each))) {
    const { mode } = statSync(path)
    try {
      if (mode & 0o007) chmodSync(path, mode & 0o770)
    } catch {
      // It belongs to another user, who has let this one write.
    }
  }
}

/** Creates a folder durably: a power cut can lose it unless its parent is fsynced. */
export function createFolder(folder: string): void {
  if (existsSync(folder)) return
  createFolder(dirname(folder))
  try {
    // Not `recursive`: in a folder that refuses it, such as /proc, Node would try forever.
    mkdirSync(folder)
  } catch (error) {
    if ((error as { code?: string }).code !== 'EEXIST') throw error
  }
  syncFile(dirname(folder))
}

import { chmodSync, closeSync, existsSync, mkdirSync, openSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import Database from 'better-sqlite3'
import { syncFile } from '../files/replace-file.ts'
import { sqliteDialect } from '../schema/dialect.ts'
import { bringUpToDate, schemaVersion } from '../schema/migrations.ts'
import { logSuffixes } from '../store-url.ts'
import { openConnection } from './connection.ts'
import { checkedVersion, kyselyOn } from './schema.ts'

/** One at a time in this thread, as waiting for a lock blocks the thread. */
let lastTurn: Promise<unknown> = Promise.resolve()

/**
 * Creates a store's file, folders and tables as needed. Resolves like {@link bringUpToDate}.
 *
 * @throws Error if the file is not a store, or a newer one; it is then unchanged
 */
export async function migrateSqlite(file: string, lockTimeoutMs: number): Promise<number | undefined> {
  createFolder(dirname(resolve(file)))
  closeSync(openSync(file, 'a', privateMode))
  const turn = lastTurn.then(() => migrateOnce(file, lockTimeoutMs))
  lastTurn = turn.catch(() => {})
  const found = await turn
  hideFromOthers(file)
  return found
}

async function migrateOnce(file: string, timeout: number): Promise<number | undefined> {
  const connection = openConnection(file, { timeout })
  try {
    // SQLite would take such a file for an empty one, and overwrite it.
    if (statSync(file).size === 1) throw new Database.SqliteError('file is not a database', 'SQLITE_NOTADB')
    // Even if nothing is to be done, so that a lock of another process is noticed now and not at the first
    // change.
    connection.exec('begin immediate')
    const found = await checkedVersion(connection)
    // The trigger of an earlier release must not run in a migration.
    if (found !== schemaVersion) connection.exec('drop trigger if exists announce_added_plant')
    await bringUpToDate(kyselyOn(connection), sqliteDialect)
    connection.exec('commit')
    return found
  } finally {
    // Takes an open transaction back.
    connection.close()
  }
}

/** Only for the server's user, as a store contains hashes of tokens. The WAL gets the same mode. */
export const privateMode = 0o600

/** Closes a store of an earlier version, or one restored from it, to everybody but its owner and group. */
export function hideFromOthers(file: string): void {
  for (const path of ['', ...logSuffixes].map(suffix => file + suffix).filter(each => existsSync(each))) {
    const { mode } = statSync(path)
    try {
      if (mode & 0o007) chmodSync(path, mode & 0o770)
    } catch {
      // Only the owner may change the mode, and another user may write.
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

import Database from 'better-sqlite3'
import { createSnapshot } from '../snapshot.ts'
import type { StoreSnapshot } from '../storage.ts'
import { closeOnError, openConnection, reasonOf } from './connection.ts'
import { findVersion, versionOf } from './migrate.ts'

/** @param file an existing store of any known version, which it keeps */
export async function openSqliteSnapshot(file: string): Promise<StoreSnapshot> {
  return closeOnError(await plainly(() => openReadOnly(file)), reader => {
    reader.exec('begin')
    return createSnapshot({
      schemaVersion: versionOf(reader),
      query: sql => plainly(() => reader.prepare<[], object>(sql).all()),
      async [Symbol.asyncDispose]() {
        reader.close()
      },
    })
  })
}

/**
 * Opens a store of any known version read-only. May write the log back, so that no file is left behind if no other
 * process uses the store.
 *
 * @throws Error if the file is not a store, or a newer one
 */
export function openReadOnly(file: string): Database.Database {
  return closeOnError(openConnection(file, { fileMustExist: true }), connection => {
    connection.pragma('query_only = on')
    if (findVersion(connection) === undefined) throw new Database.SqliteError('it is empty', 'SQLITE_NOTADB')
    return connection
  })
}

async function plainly<Result>(read: () => Result): Promise<Result> {
  try {
    return read()
  } catch (cause) {
    throw new Error(reasonOf(cause), { cause })
  }
}

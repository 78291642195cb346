import type Database from 'better-sqlite3'
import { EmptyStoreError, type ReadTransaction } from '../storage.ts'
import { closeOnError, openConnection, reasonOf } from './connection.ts'
import { findVersion, versionOf } from './migrate.ts'
import { statements } from './statements.ts'

/** @param file an existing store of any known version, which it keeps */
export async function readSqlite(file: string): Promise<ReadTransaction> {
  return closeOnError(await plainly(() => openReadOnly(file)), connection => {
    connection.exec('begin')
    return {
      schemaVersion: versionOf(connection),
      statements: statements.read,
      query: (sql, parameters = []) =>
        plainly(() => connection.prepare<unknown[], object>(sql).all(...parameters)),
      async [Symbol.asyncDispose]() {
        connection.close()
      },
    }
  })
}

/**
 * Opens a store of any known version read-only. May write the log back, so that no file is left behind if no other
 * process uses the store.
 *
 * @throws EmptyStoreError, or Error if the file is not a store, or a newer one
 */
export function openReadOnly(file: string): Database.Database {
  return closeOnError(openConnection(file, { fileMustExist: true }), connection => {
    connection.pragma('query_only = on')
    if (findVersion(connection) === undefined) throw new EmptyStoreError()
    return connection
  })
}

async function plainly<Result>(read: () => Result): Promise<Result> {
  try {
    return read()
  } catch (cause) {
    throw cause instanceof EmptyStoreError ? cause : new Error(reasonOf(cause), { cause })
  }
}

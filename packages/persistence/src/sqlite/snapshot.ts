import type Database from 'better-sqlite3'
import { EmptyStoreError, type ReadTransaction } from '../storage.ts'
import { closeOnError, openConnection, plainly } from './connection.ts'
import { checkedVersion } from './schema.ts'
import { statements } from './statements.ts'

/** @param file an existing store of any known version, which it keeps */
export async function readSqlite(file: string): Promise<ReadTransaction> {
  const { connection, schemaVersion } = await openReadOnly(file)
  return {
    schemaVersion,
    statements: statements.read,
    query: (sql, parameters = []) =>
      plainly(() => connection.prepare<unknown[], object>(sql).all(...parameters)),
    async [Symbol.asyncDispose]() {
      connection.close()
    },
  }
}

/**
 * Opens a store of any known version read-only, in a transaction, which sees it as it was then. May write the log back,
 * so that no file is left behind if no other process uses the store.
 *
 * @throws EmptyStoreError, or Error if the file is not a store, or a newer one
 */
export function openReadOnly(
  file: string,
): Promise<{ readonly connection: Database.Database; readonly schemaVersion: number }> {
  return closeOnError(openConnection(file, { fileMustExist: true }), async connection => {
    connection.pragma('query_only = on')
    connection.exec('begin')
    const schemaVersion = await checkedVersion(connection)
    if (schemaVersion === undefined) throw new EmptyStoreError()
    return { connection, schemaVersion }
  })
}

import { compileEntities } from '../compile-entities.ts'
import { reasonWithCode, unavailableError } from '../errors.ts'
import { sqliteDialect } from '../statements/dialect.ts'
import { readRows } from '../statements/read-rows.ts'
import type { ReadStatement } from '../statements/statement.ts'
import { createStorage, type DatabaseDriver } from '../storage.ts'
import type { SqliteHandle, Storage, StorageObserver, StoreContent } from '../types.ts'
import { closeOnError, openConnection, prepareWhenNeeded } from './connection.ts'
import { connectToWriter } from './writer-client.ts'

/**
 * Attaches a thread. It reads with a connection of its own, and sends its changes to the
 * writer of the store.
 */
export function attachSqlite(
  handle: SqliteHandle,
  { entities, translateError }: StoreContent,
  observer: StorageObserver,
): Storage {
  const { file, queueChangesMax } = handle
  return closeOnError(openConnection(file, { readonly: true }), connection => {
    const compiled = compileEntities(entities, sqliteDialect)
    const prepare = prepareWhenNeeded(connection)
    // With its first read, SQLite opens the files. Later, this process may have too many.
    prepare(compiled.probeRead)
    const singleClient = connectToWriter(handle.singlePort, observer)
    const bulkClient = connectToWriter(handle.bulkPort, observer)

    const read = async (statement: ReadStatement, parameters: object) => {
      try {
        return readRows(statement, parameters, prepare)
      } catch (error) {
        const reason = new Error(reasonWithCode(error))
        throw unavailableError('the store could not be read', reason)
      }
    }

    const driver: DatabaseDriver = {
      compiled,
      runGroup: singleClient.send,
      runBulkGroup: bulkClient.send,
      groupsMax: Number.POSITIVE_INFINITY,
      watchFailures: singleClient.watchFailures,
      read,
      async check() {
        const reason = singleClient.blockedBecause()
        if (reason !== undefined) {
          throw unavailableError('the store cannot write', new Error(reason))
        }
        await read(compiled.probeRead, {})
      },
      close() {
        singleClient.close()
        bulkClient.close()
        connection.close()
      },
    }
    return createStorage(driver, { queueChangesMax, translateError, ...observer })
  })
}

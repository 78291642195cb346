import { existsSync } from 'node:fs'
import { compileEntities, type Entities } from '../entity.ts'
import { NoStoreError, unavailable } from '../errors.ts'
import { schemaVersionOf } from '../migrations.ts'
import { sqliteDialect } from '../statements/dialect.ts'
import { readRows } from '../statements/read-rows.ts'
import type { ReadStatement } from '../statements/statement.ts'
import { createStorage, type DatabaseDriver } from '../storage.ts'
import type {
  EngineOptions,
  MainStorage,
  OpeningPlan,
  SqliteHandle,
  Storage,
  StorageObserver,
  StoreContent,
} from '../types.ts'
import { inspectSqlite } from './backup.ts'
import { closeOnError, openConnection, prepareAll } from './connection.ts'
import { detailedReasonOf, withReason } from './reasons.ts'
import { migrateSqlite, openReadOnly } from './schema.ts'
import { connectToWriter, startWriter } from './writer-client.ts'

/** 1,000,000 changes of ids in any order beside one backup write less. */
const walBytesMaxDefault = 4 * 1024 ** 3

/**
 * Returns what can be done with a store on a file. Each rejects with an Error in words.
 */
export function sqliteStore(file: string, content: StoreContent) {
  const { entities } = content
  return {
    open: (options: EngineOptions) =>
      withReason(() => openSqlite(file, content, options), file),
    plan: () => withReason(() => planSqlite(file, entities), file),
    read: () => withReason(() => openReadOnly(file, entities), file),
    inspect: () => withReason(() => inspectSqlite(file, entities), file),
  }
}

async function planSqlite(
  file: string,
  entities: Entities,
): Promise<Pick<OpeningPlan, 'versionBefore'>> {
  if (!existsSync(file)) {
    return { versionBefore: undefined }
  }
  try {
    await using reading = await openReadOnly(file, entities)
    return { versionBefore: reading.schemaVersion }
  } catch (error) {
    if (error instanceof NoStoreError) {
      return { versionBefore: undefined }
    }
    throw error
  }
}

async function openSqlite(
  file: string,
  content: StoreContent,
  options: EngineOptions,
): Promise<MainStorage> {
  const { queueChangesMax, lockTimeoutMs = 5_000, migrates, ...others } = options
  const { walBytesMax = walBytesMaxDefault, ...observer } = others
  const { entities } = content
  const versionBefore = await migrateSqlite(file, entities, { lockTimeoutMs, migrates })
  await using opening = new AsyncDisposableStack()
  const { changeStatements } = compileEntities(entities, sqliteDialect)
  // The writer is closed last, because it takes a connection that may write to merge the
  // WAL into the file.
  const writer = opening.use(
    await startWriter({ file, lockTimeoutMs, walBytesMax, changeStatements }),
  )
  const share = (): SqliteHandle => ({
    kind: 'file',
    file,
    single: writer.connect('single'),
    bulk: writer.connect('bulk'),
    queueChangesMax,
  })
  const storage = opening.use(attachSqlite(share(), content, observer))
  const opened = opening.move()
  return {
    ...storage,
    versionBefore,
    schemaVersion: schemaVersionOf(entities),
    share,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

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
    const prepared = prepareAll(connection, compiled.names.keys())
    const single = connectToWriter(handle.single, observer)
    const bulk = connectToWriter(handle.bulk, observer)

    const read = async (statement: ReadStatement, parameters: object) => {
      try {
        return readRows(statement, parameters, prepared)
      } catch (error) {
        const reason = new Error(detailedReasonOf(error))
        throw unavailable('the store could not be read', reason)
      }
    }

    const driver: DatabaseDriver = {
      compiled,
      runGroup: single.send,
      runBulkGroup: bulk.send,
      groupsMax: Number.POSITIVE_INFINITY,
      watchFailures: single.watchFailures,
      read,
      async check() {
        const reason = single.blockedBecause()
        if (reason !== undefined) {
          throw unavailable('the store cannot write', new Error(reason))
        }
        await read(compiled.probeRead, {})
      },
      close() {
        single.close()
        bulk.close()
        connection.close()
      },
    }
    return createStorage(driver, { queueChangesMax, translateError, ...observer })
  })
}

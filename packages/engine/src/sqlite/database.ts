import { createStorage, type DatabaseDriver } from '../create-storage.ts'
import { compileEntities, type Entities } from '../entity.ts'
import { unavailable } from '../errors.ts'
import { schemaVersionOf } from '../migrations.ts'
import type { ReadTransaction } from '../reader.ts'
import { sqliteDialect } from '../statements/dialect.ts'
import { type RowSource, readRows } from '../statements/read-rows.ts'
import { type ReadStatement, valuesOf } from '../statements/statement.ts'
import type { EngineOptions, MainStorage, SqliteHandle, Storage, StorageObserver } from '../storage.ts'
import { inspectSqlite } from './backup.ts'
import { closeOnError, detailedReasonOf, openConnection, prepareAll, withReason } from './connection.ts'
import { migrateSqlite, openReadOnly } from './schema.ts'
import { connectToWriter, startWriter } from './writer-client.ts'

export function sqliteStore<Entered extends Entities>(file: string, entities: Entered) {
  return {
    open: (options: EngineOptions) => withReason(() => openSqlite(file, entities, options)),
    read: () => withReason(() => readSqlite(file, entities)),
    inspect: () => withReason(() => inspectSqlite(file, entities)),
  }
}

async function openSqlite<Entered extends Entities>(
  file: string,
  entities: Entered,
  { queueChangesMax, lockTimeoutMs = 5_000, ...observer }: EngineOptions,
): Promise<MainStorage<Entered>> {
  const versionBefore = await migrateSqlite(file, entities, lockTimeoutMs)
  await using opening = new AsyncDisposableStack()
  const { changeStatements } = compileEntities(entities, sqliteDialect)
  // Closed last: to merge the WAL into the file takes a connection that may write.
  const writer = opening.use(await startWriter({ file, lockTimeoutMs, changeStatements }))
  const share = (): SqliteHandle => ({
    kind: 'file',
    file,
    single: writer.connect('single'),
    bulk: writer.connect('bulk'),
    queueChangesMax,
  })
  const storage = opening.use(attachSqlite(share(), entities, observer))
  const open = opening.move()
  return {
    ...storage,
    versionBefore,
    schemaVersion: schemaVersionOf(entities),
    share,
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  }
}

async function readSqlite<Entered extends Entities>(
  file: string,
  entities: Entered,
): Promise<ReadTransaction<Entered>> {
  const { connection, schemaVersion } = await openReadOnly(file, entities)
  return {
    schemaVersion,
    compiled: compileEntities(entities, sqliteDialect),
    query: (sql, parameters = []) =>
      withReason(() => connection.prepare<unknown[], object>(sql).all(...parameters)),
    async [Symbol.asyncDispose]() {
      connection.close()
    },
  }
}

/** Attaches a thread: it reads on a connection of its own, and writes through the one writer. */
export function attachSqlite<Entered extends Entities>(
  { file, queueChangesMax, ...ports }: SqliteHandle,
  entities: Entered,
  observer: StorageObserver,
): Storage<Entered> {
  return closeOnError(openConnection(file, { readonly: true }), connection => {
    const compiled = compileEntities(entities, sqliteDialect)
    const prepared = prepareAll(connection, compiled.names.keys())
    const single = connectToWriter(ports.single, observer)
    const bulk = connectToWriter(ports.bulk, observer)
    const rows: RowSource = {
      all: (statement, given) => prepared(statement).all(valuesOf(statement, given)) as object[],
      iterate: (statement, given) =>
        prepared(statement).iterate(valuesOf(statement, given)) as Iterable<object>,
    }
    const driver: DatabaseDriver<Entered> = {
      compiled,
      runGroup: single.send,
      runBulkGroup: bulk.send,
      groupsMax: Number.POSITIVE_INFINITY,
      reportTo: single.reportTo,
      read: (statement, given) => readFrom(rows, statement, given),
      async check() {
        const reason = single.blockedBecause()
        if (reason !== undefined) throw unavailable('the store cannot write', new Error(reason))
        await readFrom(rows, compiled.probeRead, {})
      },
      close() {
        single.close()
        bulk.close()
        connection.close()
      },
    }
    return createStorage(driver, { queueChangesMax, ...observer })
  })
}

async function readFrom(rows: RowSource, statement: ReadStatement, given: object) {
  try {
    return readRows(statement, given, rows)
  } catch (cause) {
    throw unavailable('the store could not be read', new Error(detailedReasonOf(cause)))
  }
}

import { createStorage, rowsWithin, type StatementDatabase } from '../commit/create-storage.ts'
import { unavailable } from '../errors.ts'
import type { ReadTransaction } from '../repositories/reader.ts'
import { createStatements } from '../repositories/repositories.ts'
import { sqliteDialect } from '../schema/dialect.ts'
import { schemaVersion } from '../schema/migrations.ts'
import type { PlantRow } from '../schema/tables.ts'
import type { EngineOptions, ShareableStorage, SharedSqlite, Storage, StorageObserver } from '../storage.ts'
import { inspectSqlite } from './backup.ts'
import { closeOnError, detailedReasonOf, openConnection, plainly, prepareAll } from './connection.ts'
import { migrateSqlite, openReadOnly } from './schema.ts'
import { connectToWriter, startWriter } from './writer-client.ts'

export const statements = createStatements(sqliteDialect)

export function createSqliteEngine(file: string) {
  return {
    open: (options: EngineOptions) => plainly(() => openSqlite(file, options)),
    read: () => plainly(() => readSqlite(file)),
    inspect: () => plainly(() => inspectSqlite(file)),
  }
}

async function openSqlite(
  file: string,
  { limits, lockTimeoutMs, ...observer }: EngineOptions,
): Promise<ShareableStorage> {
  const versionBefore = await migrateSqlite(file, lockTimeoutMs)
  await using opening = new AsyncDisposableStack()
  // Closed last: to merge the WAL into the file takes a connection that may write.
  const { transactionChangesMax } = limits
  const writer = opening.use(
    await startWriter({ file, lockTimeoutMs, transactionChangesMax, statements: statements.change }),
  )
  const share = (): SharedSqlite => ({
    kind: 'file',
    file,
    single: writer.connect('single'),
    bulk: writer.connect('bulk'),
    limits,
  })
  const storage = opening.use(attachSqlite(share(), observer))
  const open = opening.move()
  return { ...storage, versionBefore, schemaVersion, share, [Symbol.asyncDispose]: () => open.disposeAsync() }
}

async function readSqlite(file: string): Promise<ReadTransaction> {
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

/** Attaches a thread: it reads on a connection of its own, and writes through the one writer. */
export function attachSqlite(
  { file, limits, ...toWriter }: SharedSqlite,
  { onCommit, onStateChange }: StorageObserver,
): Storage {
  return closeOnError(openConnection(file, { readonly: true }), connection => {
    const prepared = prepareAll(connection, statements.read)
    const single = connectToWriter(toWriter.single, onCommit)
    const bulk = connectToWriter(toWriter.bulk, onCommit)
    const database: StatementDatabase = {
      statements,
      runGroup: single.send,
      runBulkGroup: bulk.send,
      groupsMax: Number.POSITIVE_INFINITY,
      read: (name, values) => reading(() => prepared[name].all(values)),
      readPage: (name, values, textBytesMax) =>
        reading(() => {
          // Row by row takes twice as long, so only if the texts reach the limit.
          const { bytes } = prepared[`${name}Bytes`].get(values) as { bytes: bigint | null }
          if ((bytes ?? 0n) < textBytesMax) return prepared[name].all(values)
          return rowsWithin(textBytesMax, prepared[name].iterate(values) as Iterable<PlantRow>)
        }),
      async check() {
        const reason = single.blocked()
        if (reason !== undefined) throw unavailable('the store cannot write', new Error(reason))
        await reading(() => prepared.plant.all(0n))
      },
      close() {
        single.close()
        bulk.close()
        connection.close()
      },
    }
    return createStorage(database, { limits, onStateChange })
  })
}

async function reading<Result>(work: () => unknown): Promise<Result> {
  try {
    return work() as Result
  } catch (cause) {
    throw unavailable('the store could not be read', new Error(detailedReasonOf(cause)))
  }
}

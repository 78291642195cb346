import type Database from 'better-sqlite3'
import { createStorage, rowsWithin } from '../create-storage.ts'
import type { GroupCommitLimits } from '../group-commit.ts'
import type { StatementRunner } from '../repositories.ts'
import type { Engine, EngineOptions, SharedSqlite, Storage, StorageObserver } from '../storage.ts'
import type { PlantRow } from '../tables.ts'
import { openSqliteArchive, openSqliteSnapshot } from './archive.ts'
import { inspectSqlite } from './backup.ts'
import { closeOnError, detailedReasonOf, inMemory, openConnection } from './connection.ts'
import { bringUpToDate, migrateSqlite } from './migrate.ts'
import { statements } from './statements.ts'
import { prepareAll, prepareTransaction } from './transaction.ts'
import { connectToWriter, startWriter, unavailable, type Writer, type WriterLane } from './writer.ts'

export function createSqliteEngine(file: string): Engine {
  return {
    open: options => openSqlite(file, options),
    archive: () => openSqliteArchive(file),
    snapshot: () => openSqliteSnapshot(file),
    inspect: async () => inspectSqlite(file),
  }
}

async function openSqlite(file: string, { limits, ...observer }: EngineOptions): Promise<Storage> {
  await migrateSqlite(file)
  await using opening = new AsyncDisposableStack()
  // Closed last: only a connection that may write checkpoints the log and removes it.
  const { batchRowsMax } = limits
  const writer = opening.use(await startWriter({ file, batchRowsMax, statements: statements.change }))
  const share = (): SharedSqlite => ({
    kind: 'file',
    file,
    writer: writer.connect('single'),
    bulkWriter: writer.connect('bulk'),
    limits,
  })
  const storage = opening.use(attachSqlite(share(), observer))
  const open = opening.move()
  return { ...storage, share, [Symbol.asyncDispose]: () => open.disposeAsync() }
}

/** Attaches a thread: it reads on a connection of its own, and writes through the one writer. */
export function attachSqlite(
  { file, writer, bulkWriter, limits }: SharedSqlite,
  { onCommit, onStateChange }: StorageObserver,
): Storage {
  return closeOnError(openConnection(file, { readonly: true }), reader =>
    storageOn(
      reader,
      { single: connectToWriter(writer, onCommit), bulk: connectToWriter(bulkWriter, onCommit) },
      limits,
      onStateChange,
    ),
  )
}

/** Returns a store that ends with its process. It has one connection and no disk to wait for. */
export function createMemoryEngine(): Engine {
  const refuse = () => Promise.reject(new Error('it exists only in the memory of one process'))
  return {
    async open({ limits, onCommit = () => {}, onStateChange }) {
      const connection = openConnection(inMemory)
      await bringUpToDate(connection)
      const runTransaction = prepareTransaction(connection, statements.change)
      const writer: Writer = {
        async write(batch) {
          const begun = performance.now()
          const affectedRows = runTransaction([batch]).flat()
          onCommit({ changes: batch.length, ms: performance.now() - begun })
          return affectedRows
        },
        outage: () => undefined,
        close: () => {},
      }
      return storageOn(connection, { single: writer, bulk: writer }, limits, onStateChange)
    },
    archive: refuse,
    snapshot: refuse,
    inspect: refuse,
  }
}

function storageOn(
  reader: Database.Database,
  { single, bulk }: Readonly<Record<WriterLane, Writer>>,
  limits: GroupCommitLimits,
  onStateChange: StorageObserver['onStateChange'],
): Storage {
  const prepared = prepareAll(reader, statements.read)
  const reading = async <Result>(work: () => unknown): Promise<Result> => {
    try {
      return work() as Result
    } catch (cause) {
      throw unavailable('the store could not be read', detailedReasonOf(cause))
    }
  }
  const read: StatementRunner['read'] = (name, ...parameters) =>
    reading(() => prepared[name].all(...parameters))
  const readPage: StatementRunner['readPage'] = (name, textBytesMax, ...parameters) =>
    reading(() => {
      // Row by row takes twice as long, so only if the texts reach the limit.
      const { bytes } = prepared[`${name}Bytes`].get(...parameters) as { bytes: bigint | null }
      if ((bytes ?? 0n) < textBytesMax) return prepared[name].all(...parameters)
      return rowsWithin(textBytesMax, prepared[name].iterate(...parameters) as Iterable<PlantRow>)
    })

  return createStorage(
    {
      runTransaction: single.write,
      runBulk: bulk.write,
      batchesMax: Number.POSITIVE_INFINITY,
      read,
      readPage,
      async check() {
        const reason = single.outage()
        if (reason !== undefined) throw unavailable('the store cannot write', reason)
        await read('plant', 0n)
      },
      close() {
        single.close()
        bulk.close()
        reader.close()
      },
    },
    { limits, onStateChange },
  )
}

import type Database from 'better-sqlite3'
import { createGroupCommit, type GroupCommitLimits } from '../group-commit.ts'
import { noChange, watchOutages } from '../outage.ts'
import { createRepositories, type StatementRunner } from '../repositories.ts'
import type { Statements } from '../shared-statements.ts'
import type {
  CommitObserver,
  Engine,
  EngineOptions,
  SharedSqlite,
  StateObserver,
  Storage,
} from '../storage.ts'
import type { PlantRow } from '../tables.ts'
import { openSqliteArchive } from './archive.ts'
import { createStoreFile, inspectSqlite } from './backup.ts'
import { openReader } from './connection.ts'
import { migrateSqlite } from './migrate.ts'
import { detailedReasonOf } from './reason.ts'
import { openSqliteSnapshot } from './snapshot.ts'
import { statements } from './statements.ts'
import { connectToWriter, startWriter, unavailable, type Writer } from './writer.ts'

/** @param file a path */
export function createSqliteEngine(file: string): Engine {
  return {
    open: (options, observer) => openSqlite(file, options, observer),
    archive: () => openSqliteArchive(file),
    snapshot: () => openSqliteSnapshot(file),
    inspect: async () => inspectSqlite(file),
  }
}

async function openSqlite(
  file: string,
  { limits }: EngineOptions,
  observer: CommitObserver & StateObserver,
): Promise<Storage> {
  createStoreFile(file)
  await migrateSqlite(file)
  await using opening = new AsyncDisposableStack()
  // Closed last: only a connection that may write takes the log into the database and removes it.
  const writer = opening.adopt(await startWriter({ file, batchRowsMax: limits.batchRowsMax }), each =>
    each.close(),
  )
  const share = (): SharedSqlite => ({ kind: 'file', file, writer: writer.connect(), limits })
  const storage = opening.use(attachSqlite(share(), observer))
  const open = opening.move()
  return { ...storage, share, [Symbol.asyncDispose]: () => open.disposeAsync() }
}

/** Each thread reads on a connection of its own, and all of them write through the one writer. */
export function attachSqlite(
  { file, writer, limits }: SharedSqlite,
  { onCommit, onStateChange }: CommitObserver & StateObserver,
): Storage {
  return createStorage(openReader(file), connectToWriter(writer, onCommit), limits, onStateChange)
}

export function createStorage(
  reader: Database.Database,
  writer: Writer,
  limits: GroupCommitLimits,
  onStateChange: StateObserver['onStateChange'],
): Storage {
  const check = async () => {
    const reason = writer.outage()
    if (reason !== undefined) throw unavailable('the store can not write', reason)
    await read('plant', 0n)
  }
  const outages = watchOutages(async () => {
    await check()
    await groupCommit.submit(noChange)
  }, onStateChange)
  const groupCommit = createGroupCommit({
    runTransaction: batch => writer.runTransaction(batch).catch(outages.failed),
    transactionsMax: Number.POSITIVE_INFINITY,
    limits,
  })
  const prepared = Object.fromEntries(
    Object.entries(statements.read).map(([name, sql]) => [name, reader.prepare(sql)]),
  ) as Record<keyof Statements['read'], Database.Statement>
  const reading = <Result>(work: () => Result): Result => {
    try {
      return work()
    } catch (cause) {
      return outages.failed(unavailable('the store could not be read', detailedReasonOf(cause)))
    }
  }
  const read: StatementRunner['read'] = async <Row>(
    name: keyof Statements['read'],
    ...parameters: unknown[]
  ) => reading(() => prepared[name].all(...parameters) as Row[])
  const readPage: StatementRunner['readPage'] = async (name, textBytesMax, ...parameters) =>
    reading(() => {
      // Row by row takes twice as long, so only where the texts reach the bound.
      const [{ bytes }] = prepared[`${name}Bytes`].all(...parameters) as [{ bytes: bigint | null }]
      if ((bytes ?? 0n) < textBytesMax) return prepared[name].all(...parameters) as PlantRow[]
      return rowsWithin(textBytesMax, prepared[name].iterate(...parameters) as Iterable<PlantRow>)
    })

  return {
    ...createRepositories({ submit: groupCommit.submit, read, readPage }),
    check,
    pending: groupCommit.pending,
    async [Symbol.asyncDispose]() {
      outages.end()
      await groupCommit.drain()
      writer.close()
      reader.close()
    },
  }
}

function rowsWithin(textBytesMax: number, page: Iterable<PlantRow>): PlantRow[] {
  const rows: PlantRow[] = []
  let bytes = 0
  for (const row of page) {
    rows.push(row)
    bytes += Buffer.byteLength(row.name) + Buffer.byteLength(row.tag ?? '')
    if (bytes >= textBytesMax) break
  }
  return rows
}

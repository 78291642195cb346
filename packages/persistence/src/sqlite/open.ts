import { statSync } from 'node:fs'
import type Database from 'better-sqlite3'
import type { CommitQueueLimits } from '../commit-queue.ts'
import { schemaVersion } from '../migrations.ts'
import type { Statements } from '../statements.ts'
import type { CommitObserver, StateObserver, Storage } from '../storage.ts'
import { prepareCommit } from './commit.ts'
import { inMemory, openConnection } from './connection.ts'
import { findVersion } from './query.ts'
import { statements } from './statements.ts'
import { createStorage, joinSqlite } from './storage.ts'
import { createStoreFile } from './store-file.ts'
import { startWriterThread, type Writer } from './writer-thread.ts'

/** @param file a path, or {@link inMemory} */
export async function openSqlite(
  file: string,
  limits: CommitQueueLimits,
  observer: CommitObserver & StateObserver,
): Promise<Storage> {
  if (file === inMemory) return openInMemory(limits, observer)
  createStoreFile(file)
  const connection = openConnection(file)
  try {
    await bringUpToDate(connection)
  } finally {
    connection.close()
  }
  await using opening = new AsyncDisposableStack()
  // Closed last: only a connection that may write takes the log into the database and removes it.
  const writer = opening.adopt(
    await startWriterThread({ file, statements: statements.write, batchRowsMax: limits.batchRowsMax }),
    thread => thread.close(),
  )
  const link = () => ({ file, statements, writer: writer.open(), limits })
  const storage = opening.use(joinSqlite(link(), observer))
  const open = opening.move()
  return { ...storage, link, [Symbol.asyncDispose]: () => open.disposeAsync() }
}

/** Whose turn it is in this thread: a connection that waited for another's lock here would keep it from going on. */
let lastTurn: Promise<void> = Promise.resolve()

/**
 * Makes the store if there is none, and brings its schema up to date.
 *
 * @throws Error when the file is no store, or a newer one; it is then left as it was
 */
export function bringUpToDate(connection: Database.Database): Promise<void> {
  const turn = lastTurn.then(async () => {
    // Which SQLite takes for an empty one, and writes over.
    if (!connection.memory && statSync(connection.name).size === 1) throw new Error('file is not a database')
    if (versionUnderLock(connection) === schemaVersion) return
    const { migrateSqlite } = await import('./migrate.ts')
    await migrateSqlite(connection)
  })
  lastTurn = turn.catch(() => {})
  return turn
}

/** Whoever keeps others from writing is found out at once, and not by the first change. */
function versionUnderLock(connection: Database.Database): number | undefined {
  connection.exec('begin immediate')
  try {
    return findVersion(connection)
  } finally {
    connection.exec('rollback')
  }
}

async function openInMemory(
  limits: CommitQueueLimits,
  { onCommit, onStateChange }: CommitObserver & StateObserver,
): Promise<Storage> {
  const connection = openConnection(inMemory)
  await bringUpToDate(connection)
  const writer = createMemoryWriter(connection, statements.write, onCommit)
  return createStorage(connection, statements.read, writer, limits, onStateChange)
}

/** Memory has no disk to wait for, and no second connection. */
function createMemoryWriter(
  connection: Database.Database,
  statements: Statements['write'],
  onCommit: CommitObserver['onCommit'] = () => {},
): Writer {
  const commit = prepareCommit(connection, statements)
  return {
    async commit(writes) {
      const begun = performance.now()
      const changed = commit(writes)
      onCommit({ rows: writes.length, ms: performance.now() - begun })
      return changed
    },
    failure: () => undefined,
    close: () => {},
  }
}

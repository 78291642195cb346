import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type Database from 'better-sqlite3'
import {
  CompiledQuery,
  DummyDriver,
  Kysely,
  SqliteAdapter,
  SqliteDialect,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely'
import type { CommitQueueLimits } from '../commit-queue.ts'
import type { CommitObserver, Storage } from '../index.ts'
import { migrate, sqliteDialect } from '../migrations.ts'
import { type Statements, writeStatements } from '../statements.ts'
import type { Tables } from '../tables.ts'
import { prepareCommit } from './commit.ts'
import { inMemory, openConnection } from './connection.ts'
import { createStorage, joinSqlite } from './storage.ts'
import { startWriterThread, type Writer } from './writer-thread.ts'

export const statements = writeStatements(
  new Kysely<Tables>({
    dialect: {
      createAdapter: () => new SqliteAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: db => new SqliteIntrospector(db),
      createQueryCompiler: () => new SqliteQueryCompiler(),
    },
  }),
)

/** @param file a path, or {@link inMemory} */
export async function openSqlite(
  file: string,
  limits: CommitQueueLimits,
  onCommit?: CommitObserver['onCommit'],
): Promise<Storage> {
  if (file !== inMemory) createFolder(dirname(resolve(file)))
  // Which SQLite takes for an empty one, and writes over.
  if (statSync(file, { throwIfNoEntry: false })?.size === 1) throw new Error('file is not a database')
  const connection = openConnection(file)
  try {
    await migrateSqlite(connection)
  } catch (error) {
    connection.close()
    throw error
  }
  if (file === inMemory)
    return createStorage(
      connection,
      statements.read,
      createMemoryWriter(connection, statements.write, onCommit),
      limits,
    )

  connection.close()
  const writer = await startWriterThread({
    file,
    statements: statements.write,
    batchRowsMax: limits.batchRowsMax,
  })
  const link = () => ({ file, statements, writer: writer.open(), limits })
  const storage = joinSqlite(link(), onCommit)
  return {
    ...storage,
    link,
    async [Symbol.asyncDispose]() {
      await storage[Symbol.asyncDispose]()
      // Last: only a connection that may write takes the log into the database and removes it.
      await writer.close()
    },
  }
}

/** Whose turn it is in this thread: a connection that waited for another's lock here would keep it from going on. */
let lastTurn: Promise<void> = Promise.resolve()

/**
 * Makes the store if there is none, and brings its schema up to date.
 *
 * @throws Error when the file is no store, or a newer one; it is then left as it was
 */
export function migrateSqlite(connection: Database.Database): Promise<void> {
  const turn = lastTurn.then(() => migrateInTurn(connection))
  lastTurn = turn.catch(() => {})
  return turn
}

async function migrateInTurn(connection: Database.Database): Promise<void> {
  const db = new Kysely<Tables>({ dialect: new SqliteDialect({ database: connection }) })
  try {
    await db.executeQuery(CompiledQuery.raw('begin immediate'))
    await migrate(db, sqliteDialect)
    await db.executeQuery(CompiledQuery.raw('commit'))
  } catch (error) {
    if (connection.inTransaction) await db.executeQuery(CompiledQuery.raw('rollback'))
    throw error
  }
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

/** A folder that was just made is lost with the power unless the one above it is fsynced. */
export function createFolder(folder: string): void {
  if (existsSync(folder)) return
  createFolder(dirname(folder))
  mkdirSync(folder, { recursive: true })
  const above = openSync(dirname(folder), 'r')
  fsyncSync(above)
  closeSync(above)
}

import { statSync } from 'node:fs'
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
  sql,
} from 'kysely'
import type { CommitQueueLimits } from '../commit-queue.ts'
import type { CommitObserver, Storage } from '../index.ts'
import { type Dialect, migrate } from '../migrations.ts'
import { type Statements, writeStatements } from '../statements.ts'
import type { Tables } from '../tables.ts'
import { prepareCommit } from './commit.ts'
import { inMemory, openConnection } from './connection.ts'
import { createStorage, joinSqlite } from './storage.ts'
import { createFolder } from './store-file.ts'
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

const sqliteDialect: Dialect = {
  int64: 'integer',
  tableOptions: sql`strict`,
  plantsByTag: sql`tag, id`,
  tableNames: async db => (await db.introspection.getTables()).map(({ name }) => name),
}

/**
 * Makes the store if there is none, and brings its schema up to date.
 *
 * @throws Error when the file is no store, or a newer one; it is then left as it was
 */
export async function migrateSqlite(connection: Database.Database): Promise<void> {
  // Which SQLite takes for an empty one, and writes over.
  if (!connection.memory && statSync(connection.name).size === 1) throw new Error('file is not a database')
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

import { statSync } from 'node:fs'
import type Database from 'better-sqlite3'
import { CompiledQuery, Kysely, SqliteDialect, sql } from 'kysely'
import { type Dialect, migrate, refuseForeign, refuseNewer, schemaVersion } from '../migrations.ts'
import type { Tables } from '../tables.ts'
import { openConnection } from './connection.ts'

const sqliteDialect: Dialect = {
  int64: 'integer',
  tableOptions: sql`strict`,
  plantsByTag: sql`tag, id`,
  tableNames: async db => (await db.introspection.getTables()).map(({ name }) => name),
}

/** Creates the tables of a store if there are none, and brings them up to date. Throws as {@link bringUpToDate}. */
export async function migrateSqlite(file: string): Promise<void> {
  const connection = openConnection(file)
  try {
    await bringUpToDate(connection)
  } finally {
    connection.close()
  }
}

/** Whose turn it is in this thread: a connection that waited for another's lock here would keep it from going on. */
let lastTurn: Promise<void> = Promise.resolve()

/** @throws Error when the file is no store, or a newer one; it is then left as it was */
export function bringUpToDate(connection: Database.Database): Promise<void> {
  const turn = lastTurn.then(async () => {
    // Which SQLite takes for an empty one, and writes over.
    if (!connection.memory && statSync(connection.name).size === 1) throw new Error('file is not a database')
    if (versionUnderLock(connection) === schemaVersion) return
    const db = new Kysely<Tables>({ dialect: new SqliteDialect({ database: connection }) })
    try {
      await db.executeQuery(CompiledQuery.raw('begin immediate'))
      await migrate(db, sqliteDialect)
      await db.executeQuery(CompiledQuery.raw('commit'))
    } catch (error) {
      if (connection.inTransaction) await db.executeQuery(CompiledQuery.raw('rollback'))
      throw error
    }
  })
  lastTurn = turn.catch(() => {})
  return turn
}

/** Another process that keeps the lock is found out at once, and not by the first change. */
function versionUnderLock(connection: Database.Database): number | undefined {
  connection.exec('begin immediate')
  try {
    return findVersion(connection)
  } finally {
    connection.exec('rollback')
  }
}

/**
 * Returns the version of a store; `undefined` when it is empty.
 *
 * @throws Error when it is another program's, or was written by a newer version of this software
 */
export function findVersion(connection: Database.Database): number | undefined {
  const tables = connection.prepare("select name from sqlite_schema where type = 'table'").pluck().all()
  if (tables.length === 0) return undefined
  refuseForeign(tables as string[])
  const version = versionOf(connection)
  refuseNewer(version)
  return version
}

export function versionOf(connection: Database.Database): number {
  return Number(connection.prepare('select version from schema_version').pluck().get())
}

import { statSync } from 'node:fs'
import type Database from 'better-sqlite3'
import { Kysely, SqliteDialect, sql } from 'kysely'
import { type Dialect, isStore, knownVersion, migrate, schemaVersion } from '../migrations.ts'
import type { Tables } from '../tables.ts'
import { openConnection } from './connection.ts'

const dialect: Dialect = { int64: 'integer', tableOptions: sql`strict`, plantsByTag: sql`tag, id` }

/** Creates the tables of a store if there are none, and brings them up to date. Throws as {@link bringUpToDate}. */
export async function migrateSqlite(file: string): Promise<void> {
  const connection = openConnection(file)
  try {
    await bringUpToDate(connection)
  } finally {
    connection.close()
  }
}

/** One migration at a time in this thread: a connection that waits for another's lock blocks the thread. */
let lastTurn: Promise<void> = Promise.resolve()

/** @throws Error when the file is no store, or a newer one; it is then left as it was */
export function bringUpToDate(connection: Database.Database): Promise<void> {
  const turn = lastTurn.then(async () => {
    // SQLite takes such a file for an empty one, and overwrites it.
    if (!connection.memory && statSync(connection.name).size === 1) throw new Error('file is not a database')
    // Also where nothing is to be done: a lock that another process keeps is found now, not by the first change.
    connection.exec('begin immediate')
    try {
      const found = findVersion(connection)
      if (found === schemaVersion) return
      const db = new Kysely<Tables>({ dialect: new SqliteDialect({ database: connection }) })
      await migrate(db, dialect, found)
      connection.exec('commit')
    } finally {
      if (connection.inTransaction) connection.exec('rollback')
    }
  })
  lastTurn = turn.catch(() => {})
  return turn
}

/** Returns the version of a store; `undefined` when it is empty. Throws as {@link isStore} and {@link knownVersion}. */
export function findVersion(connection: Database.Database): number | undefined {
  const tables = connection.prepare("select name from sqlite_schema where type = 'table'").pluck().all()
  return isStore(tables as string[]) ? knownVersion(versionOf(connection)) : undefined
}

export function versionOf(connection: Database.Database): number {
  return Number(connection.prepare('select version from schema_version').pluck().get())
}

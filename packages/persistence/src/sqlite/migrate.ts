import { statSync } from 'node:fs'
import type Database from 'better-sqlite3'
import { CompiledQuery, Kysely, SqliteDialect, sql } from 'kysely'
import { type Dialect, migrate } from '../migrations.ts'
import type { Tables } from '../tables.ts'

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

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

/** The part of `bringUpToDate` that needs Kysely, loaded only for a store that is new or of an earlier version. */
export async function migrateSqlite(connection: Database.Database): Promise<void> {
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

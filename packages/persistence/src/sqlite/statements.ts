import { Kysely, SqliteDialect } from 'kysely'
import { createStatements } from '../repositories/statements.ts'
import { sqliteDialect } from '../schema/dialect.ts'
import type { Tables } from '../schema/tables.ts'

/** Kysely only compiles them: better-sqlite3 prepares and runs them. */
export const statements = createStatements(
  new Kysely<Tables>({ dialect: new SqliteDialect({ database: () => Promise.reject() }) }),
  sqliteDialect,
)

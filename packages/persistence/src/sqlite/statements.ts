import { DummyDriver, Kysely, SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler } from 'kysely'
import { sqliteDialect } from '../dialect.ts'
import { createStatements } from '../statements.ts'
import type { Tables } from '../tables.ts'

/** Kysely only compiles them: better-sqlite3 prepares and runs them. */
export const statements = createStatements(
  new Kysely<Tables>({
    dialect: {
      createAdapter: () => new SqliteAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: db => new SqliteIntrospector(db),
      createQueryCompiler: () => new SqliteQueryCompiler(),
    },
  }),
  sqliteDialect,
)

import { DummyDriver, Kysely, SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler } from 'kysely'
import { createStatements } from '../shared-statements.ts'
import type { Tables } from '../tables.ts'

/** The SQL of every statement on SQLite, by name. Kysely only compiles them: better-sqlite3 prepares and runs them. */
export const statements = createStatements(
  new Kysely<Tables>({
    dialect: {
      createAdapter: () => new SqliteAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: db => new SqliteIntrospector(db),
      createQueryCompiler: () => new SqliteQueryCompiler(),
    },
  }),
)

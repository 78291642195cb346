import { writeFileSync } from 'node:fs'
import { DummyDriver, Kysely, SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler } from 'kysely'
import { writeStatements } from '../statements.ts'
import type { Tables } from '../tables.ts'

// The build runs this file: who opens a store that is up to date is spared the hundreds of files of Kysely.
const statements = writeStatements(
  new Kysely<Tables>({
    dialect: {
      createAdapter: () => new SqliteAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: db => new SqliteIntrospector(db),
      createQueryCompiler: () => new SqliteQueryCompiler(),
    },
  }),
)
writeFileSync(new URL('./statements.json', import.meta.url), JSON.stringify(statements))

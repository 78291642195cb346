import { hashToken } from '@plant-store/access'
import {
  DummyDriver,
  Kysely,
  PostgresQueryCompiler,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely'
import { type Dialect, postgresDialect, sqliteDialect } from '../src/schema/dialect.ts'
import { migrations } from '../src/schema/migrations.ts'
import type { Tables } from '../src/schema/tables.ts'

export const earlierVersions = migrations.slice(1).map((_, n) => n + 1)

/** The statements of each migration. migrations.snapshot shows that those of a released one stay as they are. */
export const statements = { sqlite: await compile(sqliteDialect), postgres: await compile(postgresDialect) }

async function compile(dialect: Dialect): Promise<readonly string[][]> {
  const compiled: string[][] = []
  const db = new Kysely<Tables>({
    dialect: {
      createAdapter: () => new SqliteAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: db => new SqliteIntrospector(db),
      createQueryCompiler: () =>
        dialect === postgresDialect ? new PostgresQueryCompiler() : new SqliteQueryCompiler(),
    },
    log: ({ query }) => {
      compiled.at(-1)?.push(query.sql.trimEnd())
    },
  })
  for (const migration of migrations) {
    compiled.push([])
    await migration(db, dialect)
  }
  return compiled
}

/** Returns SQL that creates a store as it was at an earlier version, with two plants and a token. */
export const earlierStore = (database: keyof typeof statements, version: number) => `
  ${database === 'postgres' ? 'create table migration_lock (id integer primary key); insert into migration_lock values (1);' : ''}
  create table schema_version (version integer not null) ${database === 'sqlite' ? 'strict' : ''};
  insert into schema_version values (${version});
  ${statements[database].slice(0, version).flat().join(';\n')};
  insert into plants (id, name, tag) values (-9223372036854775808, 'first', null), (9223372036854775807, 'last', '');
  insert into access_tokens (name, hash, scopes, created_at)
    values ('old', '${hashToken('secret')}', 'plants:read', 1767323045678)
`

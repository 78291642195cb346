import { hashToken } from '@plant-store/access'
import { type Dialect, type Entity, postgresDialect, sqliteDialect } from '@plant-store/engine'
import { entities } from '@plant-store/persistence'
import {
  DummyDriver,
  Kysely,
  PostgresQueryCompiler,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely'

const ofEach = Object.values<Entity>(entities).map(({ migrations }) => migrations)
export const schemaVersion = Math.max(...ofEach.flatMap(migrations => Object.keys(migrations).map(Number)))
export const earlierVersions = Array.from({ length: schemaVersion - 1 }, (_, n) => n + 1)

/** The statements of each migration. migrations.snapshot shows that those of a released one stay as they are. */
export const statements = { sqlite: await compile(sqliteDialect), postgres: await compile(postgresDialect) }

async function compile(dialect: Dialect): Promise<readonly string[][]> {
  const compiled: string[][] = []
  const db = new Kysely<unknown>({
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
  for (const version of [...earlierVersions, schemaVersion]) {
    compiled.push([])
    for (const migrations of ofEach) await migrations[version]?.(db, dialect)
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

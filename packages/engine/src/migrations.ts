import { type Kysely, sql } from 'kysely'
import type { Entities } from './entity.ts'
import type { Dialect } from './statements/dialect.ts'

/** Returns the newest version of the schema: the number of migrations. Forward only. */
export function schemaVersionOf(entities: Entities): number {
  return Math.max(...Object.values(entities).flatMap(({ migrations }) => Object.keys(migrations).map(Number)))
}

/**
 * Creates or migrates the tables if needed, and resolves to the version that it found. The caller's transaction must
 * exclude other writers. Resolves and throws like {@link findVersion}.
 *
 * @param upTo the version that it has afterwards, not below that of the store
 */
export async function bringUpToDate(
  entities: Entities,
  db: Kysely<unknown>,
  dialect: Dialect,
  upTo = schemaVersionOf(entities),
): Promise<number | undefined> {
  const found = await findVersion(entities, db, dialect)
  if (found === upTo) return found
  if (found === undefined) {
    await db.schema
      .createTable('schema_version')
      .addColumn('version', 'integer', column => column.notNull())
      .modifyEnd(dialect.tableOptions)
      .execute()
    await sql`insert into schema_version values (0)`.execute(db)
  }
  for (let version = (found ?? 0) + 1; version <= upTo; version++) {
    const migrations = Object.values(entities).flatMap(({ migrations }) => migrations[version] ?? [])
    if (migrations.length === 0) throw new Error(`no entity has a migration to version ${version}`)
    for (const migration of migrations) await migration(db, dialect)
  }
  await sql`update schema_version set version = ${sql.lit(upTo)}`.execute(db)
  return found
}

/**
 * Returns the version of a store, or `undefined` if the database is empty.
 *
 * @throws Error if the tables belong to another program or a newer release
 */
export async function findVersion(
  entities: Entities,
  db: Kysely<unknown>,
  dialect: Dialect,
): Promise<number | undefined> {
  const { rows } = await dialect.tableNames.execute(db)
  const names = rows.map(({ name }) => name)
  if (!isStore(entities, names)) return undefined
  const found = await sql<{ version: number | bigint }>`select version from schema_version`.execute(db)
  const version = Number(found.rows[0]?.version)
  const newest = schemaVersionOf(entities)
  if (version <= newest) return version
  throw new Error(
    `it has schema version ${version}, but this release knows only versions up to ${newest}: run a newer one`,
  )
}

/**
 * Returns whether the database has a store, and false if it is empty.
 *
 * @throws Error if the tables belong to another program
 */
export function isStore(entities: Entities, tables: readonly string[]): boolean {
  if (tables.length === 0) return false
  // Other programs also have a table named `schema_version`.
  const first = Object.values(entities).flatMap(({ tables: [table], migrations }) =>
    1 in migrations ? table : [],
  )
  if (!['schema_version', ...first].every(name => tables.includes(name)))
    throw new Error('it contains tables of another program')
  return true
}

import assert from 'node:assert/strict'
import { type Kysely, sql } from 'kysely'
import type { Entities } from './compile-entities.ts'
import type { Dialect } from './statements/dialect.ts'

/** Returns the newest version of the schema. Versions begin at 1 and only go up. */
export function schemaVersionOf(entities: Entities): number {
  const versions = Object.values(entities).flatMap(({ migrations }) =>
    Object.keys(migrations).map(Number),
  )
  return Math.max(...versions)
}

/**
 * Creates or migrates the tables if needed. The caller's transaction must exclude other
 * writers.
 *
 * @param found the version that was found in this transaction
 */
export async function bringUpToDate(
  entities: Entities,
  db: Kysely<unknown>,
  dialect: Dialect,
  found: number | undefined,
): Promise<void> {
  const newest = schemaVersionOf(entities)
  if (found === newest) {
    return
  }
  if (found === undefined) {
    // PostgreSQL publishes a change only of a table that has a key.
    await sql`
      create table schema_version (version integer not null primary key)
      ${dialect.tableOptions}`.execute(db)
    await sql`insert into schema_version values (0)`.execute(db)
  }
  for (let version = (found ?? 0) + 1; version <= newest; version++) {
    const migrations = Object.values(entities).flatMap(
      entity => entity.migrations[version] ?? [],
    )
    if (migrations.length === 0) {
      throw new Error(`no entity has a migration to version ${version}`)
    }
    for (const migration of migrations) {
      await migration(db, dialect)
    }
  }
  await sql`update schema_version set version = ${sql.lit(newest)}`.execute(db)
}

/**
 * Refuses to migrate a store that a server of the older release may have open: it would
 * go on, and refuse the store at its next start.
 *
 * @throws Error that says what to do
 */
export function refuseMigration(entities: Entities, found: number | undefined): void {
  const newest = schemaVersionOf(entities)
  if (found !== undefined && found < newest) {
    throw new Error(
      `it has schema version ${found}, and this release needs ${newest}: stop the servers, then start the new one, which migrates it`,
    )
  }
}

/**
 * Returns the version that a store has.
 *
 * @param stored what its table `schema_version` says
 * @throws Error if it is not one that this release knows
 */
export function knownVersion(entities: Entities, stored: unknown): number {
  const version = Number(stored)
  const newest = schemaVersionOf(entities)
  if (version > newest) {
    throw new Error(
      `it has schema version ${version}, but this release knows only versions up to ${newest}: run a newer one`,
    )
  }
  const hasVersion = version >= 1
  if (!hasVersion) {
    throw new Error('its table schema_version has no version: restore a backup')
  }
  return version
}

/**
 * Returns whether the database has a store, and false if it is empty.
 *
 * @throws Error if the tables belong to another program
 */
export function isStore(entities: Entities, tables: readonly string[]): boolean {
  if (tables.length === 0) {
    return false
  }
  if (!hasStoreTables(entities, tables)) {
    throw new Error('it contains tables of another program')
  }
  return true
}

/**
 * Returns whether there are tables of a store among them. Other programs also have a
 * `schema_version`.
 */
export function hasStoreTables(entities: Entities, tables: readonly string[]): boolean {
  return storeTablesOf(entities).every(name => tables.includes(name))
}

/** Returns the tables by which a store is known. */
export function storeTablesOf(entities: Entities): readonly string[] {
  const [entity] = Object.values(entities)
  assert(entity !== undefined, 'a store has at least one entity')
  return ['schema_version', entity.tables[0]]
}

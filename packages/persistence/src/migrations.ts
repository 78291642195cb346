import type { Kysely, RawBuilder } from 'kysely'
import type { Tables } from './tables.ts'

// Types of Kysely only: who reads a store has to know its version, but need not load what migrates it.

/** The few words in which the dialects' table definitions differ. */
export interface Dialect {
  readonly int64: 'integer' | 'bigint'
  /** Makes SQLite refuse a value that is not of its column's type. */
  readonly tableOptions: RawBuilder<unknown>
  /** What plants are found by when they are asked for by their tag: columns or expressions. */
  readonly plantsByTag: RawBuilder<unknown>
  /** The names of the tables that are there already. */
  tableNames(db: Kysely<Tables>): Promise<readonly string[]>
}

type Migration = (db: Kysely<Tables>, dialect: Dialect) => Promise<void>

/** Forward only. A store's version is the number of these that it has seen; never change one that was released. */
const migrations: readonly Migration[] = [
  async (db, { int64, tableOptions, plantsByTag }) => {
    await db.schema
      .createTable('plants')
      .addColumn('id', int64, column => column.primaryKey().notNull())
      .addColumn('name', 'text', column => column.notNull())
      .addColumn('tag', 'text')
      .modifyEnd(tableOptions)
      .execute()
    await db.schema.createIndex('plants_by_tag').on('plants').expression(plantsByTag).execute()
    await db.schema
      .createTable('access_tokens')
      .addColumn('name', 'text', column => column.primaryKey().notNull())
      .addColumn('hash', 'text', column => column.unique().notNull())
      .addColumn('scopes', 'text', column => column.notNull())
      .addColumn('created_at', int64, column => column.notNull())
      .addColumn('expires_at', int64)
      .modifyEnd(tableOptions)
      .execute()
  },
  async (db, { int64 }) => {
    await db.schema.alterTable('access_tokens').addColumn('last_used_at', int64).execute()
  },
]

export const schemaVersion = migrations.length

/**
 * @returns how many migrations a store has seen; `undefined` when it is empty
 * @throws Error when it is another program's
 */
export async function readVersion(db: Kysely<Tables>, dialect: Dialect): Promise<number | undefined> {
  const tables = await dialect.tableNames(db)
  if (tables.length === 0) return undefined
  refuseForeign(tables)
  const row = await db.selectFrom('schema_version').select('version').executeTakeFirstOrThrow()
  // As a number, whichever way the driver hands integers over.
  return Number(row.version)
}

/**
 * Brings a store to {@link schemaVersion}. The caller holds a transaction that nobody else can write beside.
 *
 * @throws Error when the store was written by a newer version of this software, with nothing changed
 */
export async function migrate(db: Kysely<Tables>, dialect: Dialect): Promise<void> {
  const found = await readVersion(db, dialect)
  const version = found ?? 0
  refuseNewer(version)
  if (version === schemaVersion) return

  if (found === undefined) {
    await db.schema
      .createTable('schema_version')
      .addColumn('version', 'integer', column => column.notNull())
      .modifyEnd(dialect.tableOptions)
      .execute()
    await db.insertInto('schema_version').values({ version: 0 }).execute()
  }
  for (const migration of migrations.slice(version)) await migration(db, dialect)
  await db.updateTable('schema_version').set({ version: schemaVersion }).execute()
}

/** @throws Error when these are not the tables of a store */
export function refuseForeign(tables: readonly string[]): void {
  // Others have a table of the first name too.
  const isOurs = ['schema_version', 'plants', 'access_tokens'].every(name => tables.includes(name))
  if (!isOurs) throw new Error('it holds tables of another program')
}

/** @throws Error when a newer version of this software wrote the store */
export function refuseNewer(version: number): void {
  if (version <= schemaVersion) return
  throw new Error(
    `it has schema version ${version}, and this software knows versions up to ${schemaVersion}: run a newer release`,
  )
}

import { type Kysely, type RawBuilder, sql } from 'kysely'
import type { Tables } from './tables.ts'

/** The few words in which the dialects' table definitions differ. */
export interface Dialect {
  readonly int64: 'integer' | 'bigint'
  /** Makes SQLite refuse a value that is not of its column's type. */
  readonly tableOptions: RawBuilder<unknown>
}

type Migration = (db: Kysely<Tables>, dialect: Dialect) => Promise<void>

/** Forward only. A store's version is the number of these that it has seen; never change one that was released. */
const migrations: readonly Migration[] = [
  async (db, { int64, tableOptions }) => {
    await db.schema
      .createTable('plants')
      .addColumn('id', int64, column => column.primaryKey().notNull())
      .addColumn('name', 'text', column => column.notNull())
      .addColumn('tag', 'text')
      .modifyEnd(tableOptions)
      .execute()
    await db.schema.createIndex('plants_by_tag').on('plants').columns(['tag', 'id']).execute()
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
]

export const schemaVersion = migrations.length

/**
 * Brings a store to {@link schemaVersion}. The caller holds a transaction that nobody else can write beside.
 *
 * @throws Error when the store was written by a newer version of this software, with nothing changed
 */
export async function migrate(db: Kysely<Tables>, dialect: Dialect): Promise<void> {
  const tables = await db.introspection.getTables()
  const isNew = tables.length === 0
  // Others have a table of this name too.
  const isOurs = ['schema_version', 'plants', 'access_tokens'].every(name =>
    tables.some(table => table.name === name),
  )
  if (!isNew && !isOurs) {
    throw new Error('it holds tables of another program')
  }
  // As a number, whichever way the driver hands integers over.
  const version = isNew
    ? 0
    : Number((await db.selectFrom('schema_version').select('version').executeTakeFirstOrThrow()).version)
  if (version > schemaVersion) {
    throw new Error(
      `it has schema version ${version}, and this software knows versions up to ${schemaVersion}: run a newer release`,
    )
  }
  if (version === schemaVersion) return

  if (isNew) {
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

export const sqliteDialect: Dialect = { int64: 'integer', tableOptions: sql`strict` }

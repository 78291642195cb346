import { type Kysely, sql } from 'kysely'
import type { Dialect } from './dialect.ts'
import type { Tables } from './tables.ts'

type Migration = (db: Kysely<Tables>, dialect: Dialect) => Promise<void>

/** Forward only: a store's version is the number of migrations applied. Never change a released one. */
export const migrations: readonly Migration[] = [
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
  async (db, { int64 }) => {
    // A constant, so no row is rewritten. Random, so a store that is restored and migrated again gets other
    // versions.
    const before = sql.raw(`${crypto.getRandomValues(new BigInt64Array(1))[0]}`)
    await db.schema
      .alterTable('plants')
      .addColumn('version', int64, column => column.notNull().defaultTo(before))
      .execute()
  },
  async (db, { int64, tableOptions }) => {
    await db.schema
      .createTable('webhooks')
      .addColumn('id', 'text', column => column.primaryKey().notNull())
      .addColumn('url', 'text', column => column.notNull())
      .addColumn('allows_private', int64, column => column.notNull())
      .addColumn('created_at', int64, column => column.notNull())
      .addColumn('secret', 'text', column => column.notNull())
      .addColumn('former_secret', 'text')
      .addColumn('former_secret_until', int64, column => column.notNull().defaultTo(0))
      .addColumn('is_paused', int64, column => column.notNull().defaultTo(0))
      .addColumn('is_full', int64, column => column.notNull().defaultTo(0))
      .addColumn('missed', int64, column => column.notNull().defaultTo(0))
      .addColumn('failures', int64, column => column.notNull().defaultTo(0))
      .addColumn('failing_since', int64)
      .addColumn('next_claim_at', int64, column => column.notNull().defaultTo(0))
      .addColumn('lease', 'text', column => column.notNull().defaultTo(''))
      .addColumn('leased_at', int64, column => column.notNull().defaultTo(0))
      .addColumn('leased_until', int64, column => column.notNull().defaultTo(0))
      .modifyEnd(tableOptions)
      .execute()
    await db.schema
      .createTable('outbox')
      .addColumn('position', int64, column =>
        int64 === 'bigint' ? column.primaryKey().generatedAlwaysAsIdentity() : column.primaryKey(),
      )
      .addColumn('webhook', 'text', column => column.notNull().references('webhooks.id').onDelete('cascade'))
      .addColumn('version', int64, column => column.notNull())
      .addColumn('id', int64, column => column.notNull())
      .addColumn('name', 'text', column => column.notNull())
      .addColumn('tag', 'text')
      .addColumn('added_at', int64, column => column.notNull())
      .addColumn('attempts', int64, column => column.notNull().defaultTo(0))
      .addColumn('next_at', int64, column => column.defaultTo(0))
      .addColumn('reason', 'text')
      .modifyEnd(tableOptions)
      .execute()
    // First retries that are due, then new deliveries in order. With `added_at`, figures need no row.
    await db.schema
      .createIndex('outbox_due')
      .on('outbox')
      .columns(['webhook', 'next_at desc', 'position', 'added_at'])
      .execute()
    await db.schema
      .createTable('silence')
      .addColumn('id', int64, column => column.notNull())
      .modifyEnd(tableOptions)
      .execute()
  },
  async db => {
    for (const column of ['former_secret', 'former_secret_until'])
      await db.schema.alterTable('webhooks').dropColumn(column).execute()
    // It recorded that there had been a token.
    await db.deleteFrom('access_tokens').where('name', '=', sql.lit('')).execute()
  },
  async (db, { dropTrigger }) => {
    await dropTrigger.execute(db)
    await db.schema.dropTable('silence').execute()
  },
]

export const schemaVersion = migrations.length

/**
 * Creates or migrates the tables if needed, and resolves to the version that it found. The caller's transaction must
 * exclude other writers. Resolves and throws like {@link findVersion}.
 */
export async function bringUpToDate(db: Kysely<Tables>, dialect: Dialect): Promise<number | undefined> {
  const found = await findVersion(db, dialect)
  if (found === schemaVersion) return found
  if (found === undefined) await createVersionTable(db, dialect)
  for (const migration of migrations.slice(found)) await migration(db, dialect)
  await db.updateTable('schema_version').set({ version: schemaVersion }).execute()
  return found
}

export async function createVersionTable(db: Kysely<Tables>, { tableOptions }: Dialect): Promise<void> {
  await db.schema
    .createTable('schema_version')
    .addColumn('version', 'integer', column => column.notNull())
    .modifyEnd(tableOptions)
    .execute()
  await db.insertInto('schema_version').values({ version: 0 }).execute()
}

/**
 * Returns the version of a store, or `undefined` if the database is empty.
 *
 * @throws Error if the tables belong to another program or a newer release
 */
export async function findVersion(db: Kysely<Tables>, dialect: Dialect): Promise<number | undefined> {
  const { rows } = await dialect.tableNames.execute(db)
  if (!isStore(rows.map(({ name }) => name))) return undefined
  const { version } = await db.selectFrom('schema_version').select('version').executeTakeFirstOrThrow()
  if (version <= schemaVersion) return Number(version)
  throw new Error(
    `it has schema version ${version}, but this release knows only versions up to ${schemaVersion}: run a newer one`,
  )
}

/**
 * Returns whether the database has a store, and false if it is empty.
 *
 * @throws Error if the tables belong to another program
 */
export function isStore(tables: readonly string[]): boolean {
  if (tables.length === 0) return false
  // Other programs also have a table named `schema_version`.
  const isOurs = ['schema_version', 'plants', 'access_tokens'].every(name => tables.includes(name))
  if (!isOurs) throw new Error('it contains tables of another program')
  return true
}

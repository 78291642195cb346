import Database from 'better-sqlite3'
import { Kysely, SqliteDialect } from 'kysely'
import { announceOnSqlite } from '../schema/announcing.ts'
import { sqliteDialect } from '../schema/dialect.ts'
import { createVersionTable, findVersion, migrations, schemaVersion } from '../schema/migrations.ts'
import type { Tables } from '../schema/tables.ts'

export function kyselyOn(database: Database.Database): Kysely<Tables> {
  return new Kysely<Tables>({ dialect: new SqliteDialect({ database }) })
}

/**
 * Returns the version of a store, or `undefined` if it is empty. Throws like {@link findVersion}, and if the schema is
 * not what the releases make: a trigger of somebody else would run within our changes.
 */
export async function checkedVersion(connection: Database.Database): Promise<number | undefined> {
  const version = await findVersion(kyselyOn(connection), sqliteDialect)
  if (version === undefined) return undefined
  const found = objectsIn(connection)
  const made = await objectsOf(version)
  const isIn = (objects: readonly SchemaObject[]) => {
    const described = new Set(objects.map(describe))
    return (object: SchemaObject) => described.has(describe(object))
  }
  const [isMade, isFound] = [isIn(made), isIn(found)]
  // Of an earlier version, the trigger may have another text. The upgrade drops it first.
  const isEarlier = (object: SchemaObject) => version < schemaVersion && isTrigger(object)
  const wrong = [
    ...found.filter(each => !isMade(each) && !isOfOthers(each) && !isEarlier(each)),
    ...made.filter(each => !isFound(each) && !isTrigger(each)),
  ]
  if (wrong.length === 0) return version
  const names = new Set(wrong.map(({ type, name }) => `${type} ${name}`))
  throw new Error(`its schema is not as the releases make it (${[...names].join(', ')})`)
}

/** A table, an index, a view or a trigger. */
interface SchemaObject {
  readonly type: string
  readonly name: string
  readonly table: string
  /** `null` for the index of a key. */
  readonly sql: string | null
}

function objectsIn(connection: Database.Database): SchemaObject[] {
  return connection
    .prepare<[], SchemaObject>('select type, name, tbl_name as "table", sql from sqlite_schema')
    .all()
}

const made = new Map<number, Promise<SchemaObject[]>>()

/** Returns what the migrations make up to a version, with the trigger. */
function objectsOf(version: number): Promise<SchemaObject[]> {
  const known = made.get(version) ?? makeObjects(version)
  made.set(version, known)
  return known
}

async function makeObjects(version: number): Promise<SchemaObject[]> {
  const connection = new Database(':memory:')
  const db = kyselyOn(connection)
  await createVersionTable(db, sqliteDialect)
  for (const migration of migrations.slice(0, version)) await migration(db, sqliteDialect)
  await announceOnSqlite.execute(db)
  const objects = objectsIn(connection)
  connection.close()
  return objects
}

/** Earlier releases quoted and indented otherwise, and each store has a random default of its own. */
function describe({ type, name, table, sql }: SchemaObject): string {
  const words = (sql ?? '').replaceAll('"', '').replaceAll(/\s+/g, ' ')
  return `${type} ${name} ${table} ${words.replace(/\bversion integer default -?\d+/, 'version')}`
}

/** The trigger of webhooks, which only a store with one has. */
function isTrigger({ type, name, table }: SchemaObject): boolean {
  return type === 'trigger' && name === 'announce_added_plant' && table === 'plants'
}

/** SQLite's figures for its planner, and the tables of Litestream. */
function isOfOthers({ type, name }: SchemaObject): boolean {
  return type === 'table' && /^(sqlite_stat[14]|_litestream_(seq|lock))$/.test(name)
}

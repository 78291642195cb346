import { closeSync, existsSync, openSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import Database from 'better-sqlite3'
import { Kysely, SqliteDialect } from 'kysely'
import { NoStoreError } from '../errors.ts'
import { sqliteDialect } from '../schema/dialect.ts'
import {
  bringUpToDate,
  createVersionTable,
  findVersion,
  migrations,
  schemaVersion,
} from '../schema/migrations.ts'
import type { Tables } from '../schema/tables.ts'
import { closeOnError, openConnection } from './connection.ts'
import { createFolder, hideFromOthers, privateMode, refuseForeignWal, refuseSecondPath } from './files.ts'

/** One at a time in this thread, as waiting for a lock blocks the thread. */
let lastTurn: Promise<unknown> = Promise.resolve()

/**
 * Creates a store's file, folders and tables as needed. Resolves like {@link bringUpToDate}.
 *
 * @throws Error if the file is not a store, or a newer one; it is then unchanged
 */
export async function migrateSqlite(file: string, lockTimeoutMs: number): Promise<number | undefined> {
  createFolder(dirname(file))
  closeSync(openSync(file, 'a', privateMode))
  refuseSecondPath(file)
  refuseForeignWal(file)
  const turn = lastTurn.then(() => migrateOnce(file, lockTimeoutMs))
  lastTurn = turn.catch(() => {})
  const found = await turn
  hideFromOthers(file)
  return found
}

async function migrateOnce(file: string, timeout: number): Promise<number | undefined> {
  const connection = openConnection(file, { timeout })
  try {
    // SQLite would take such a file for an empty one, and overwrite it.
    if (statSync(file).size === 1) throw new Database.SqliteError('file is not a database', 'SQLITE_NOTADB')
    // Even if nothing is to be done, so that a lock of another process is noticed now and not at the first
    // change.
    connection.exec('begin immediate')
    const found = await checkedVersion(connection)
    // The trigger of an earlier release must not run in a migration.
    if (found !== schemaVersion) connection.exec('drop trigger if exists announce_added_plant')
    await bringUpToDate(kyselyOn(connection), sqliteDialect)
    connection.exec('commit')
    return found
  } finally {
    // Takes an open transaction back.
    connection.close()
  }
}

/**
 * Opens a store or a backup to read it as of the first read, and changes no byte of it.
 *
 * @throws Error if the WAL beside it is not its own
 */
export function openToRead(file: string): Database.Database {
  refuseForeignWal(file)
  // Otherwise closing would merge a WAL that a crash left. Without one, it is what removes an empty one.
  const readonly = ['-wal', '-journal'].some(suffix => existsSync(file + suffix))
  return closeOnError(openConnection(file, { fileMustExist: true, readonly }), connection => {
    connection.pragma('query_only = on')
    return connection.exec('begin')
  })
}

/**
 * Opens a store of any known version like {@link openToRead}.
 *
 * @throws NoStoreError, or Error if the file is not a store, or a newer one
 */
export function openReadOnly(
  file: string,
): Promise<{ readonly connection: Database.Database; readonly schemaVersion: number }> {
  return closeOnError(openToRead(file), async connection => {
    const schemaVersion = await checkedVersion(connection)
    if (schemaVersion === undefined) throw new NoStoreError('it is empty')
    return { connection, schemaVersion }
  })
}

/**
 * Returns the version of a store, or `undefined` if it is empty. Throws like {@link findVersion}, and if the schema is
 * not what the releases make: a trigger of somebody else would run within our changes.
 */
async function checkedVersion(connection: Database.Database): Promise<number | undefined> {
  const version = await findVersion(kyselyOn(connection), sqliteDialect)
  if (version === undefined) return undefined
  const found = objectsIn(connection)
  const made = await objectsOf(version)
  // Of an earlier version, the trigger may have another text. The upgrade drops it first.
  const isEarlier = (object: SchemaObject) => version < schemaVersion && isTrigger(object)
  const wrong = [
    ...[...found].filter(([words, each]) => !made.has(words) && !isOfOthers(each) && !isEarlier(each)),
    ...[...made].filter(([words, each]) => !found.has(words) && !isTrigger(each)),
  ]
  if (wrong.length === 0) return version
  const names = new Set(wrong.map(([, { type, name }]) => `${type} ${name}`))
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

/** By all that must be equal. */
type SchemaObjects = ReadonlyMap<string, SchemaObject>

function objectsIn(connection: Database.Database): SchemaObjects {
  const sql = 'select type, name, tbl_name as "table", sql from sqlite_schema'
  const objects = connection.prepare<[], SchemaObject>(sql).all()
  return new Map(objects.map(each => [describe(each), each]))
}

const madeBefore = new Map<number, Promise<SchemaObjects>>()

/** Returns what the migrations make up to a version, with the trigger. Making it takes 10 ms. */
function objectsOf(version: number): Promise<SchemaObjects> {
  const objects = madeBefore.get(version) ?? makeObjects(version)
  madeBefore.set(version, objects)
  return objects
}

async function makeObjects(version: number): Promise<SchemaObjects> {
  const connection = new Database(':memory:')
  const db = kyselyOn(connection)
  await createVersionTable(db, sqliteDialect)
  for (const migration of migrations.slice(0, version)) await migration(db, sqliteDialect)
  await sqliteDialect.beginAnnouncing.execute(db)
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

function kyselyOn(database: Database.Database): Kysely<Tables> {
  return new Kysely<Tables>({ dialect: new SqliteDialect({ database }) })
}

import { closeSync, existsSync, openSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import Database from 'better-sqlite3'
import { Kysely, SqliteDialect } from 'kysely'
import type { Entities } from '../entity.ts'
import { NoStoreError } from '../errors.ts'
import { bringUpToDate, findVersion, schemaVersionOf } from '../migrations.ts'
import { sqliteDialect } from '../statements/dialect.ts'
import { closeOnError, openConnection } from './connection.ts'
import {
  createFileLike,
  createFolder,
  hideFromOthers,
  privateMode,
  refuseForeignWal,
  refuseSecondPath,
  unlessExists,
} from './files.ts'
import { forgetBackup } from './last-backup.ts'

/** One at a time in this thread, as waiting for a lock blocks the thread. */
let lastTurn: Promise<unknown> = Promise.resolve()

/**
 * Creates a store's file, folders and tables as needed. Resolves like {@link bringUpToDate}.
 *
 * @throws Error if the file is not a store, or a newer one; it is then unchanged
 */
export async function migrateSqlite(
  file: string,
  entities: Entities,
  lockTimeoutMs: number,
): Promise<number | undefined> {
  const stat = statSync(file, { throwIfNoEntry: false })
  // Opening a pipe would wait for ever.
  if (stat && !stat.isFile() && !stat.isDirectory()) throw new Error('it is not a file')
  const folder = dirname(file)
  createFolder(folder)
  if (unlessExists(() => createFileLike(file, folder))) forgetBackup(file)
  else closeSync(openSync(file, 'a', privateMode))
  refuseSecondPath(file)
  refuseForeignWal(file)
  const turn = lastTurn.then(() => migrateOnce(file, entities, lockTimeoutMs))
  lastTurn = turn.catch(() => {})
  const found = await turn
  hideFromOthers(file)
  return found
}

async function migrateOnce(file: string, entities: Entities, timeout: number): Promise<number | undefined> {
  const connection = openConnection(file, { timeout })
  try {
    refuseOldSqlite(connection)
    // SQLite would take such a file for an empty one, and overwrite it.
    if (statSync(file).size === 1) throw new Database.SqliteError('file is not a database', 'SQLITE_NOTADB')
    // Even if nothing is to be done, so that a lock of another process is noticed now and not at the first
    // change.
    connection.exec('begin immediate')
    const found = await checkedVersion(entities, connection)
    // A trigger of an earlier release must not run in a migration.
    if (found !== schemaVersionOf(entities))
      for (const { name } of formerTriggersOf(entities)) connection.exec(`drop trigger if exists "${name}"`)
    await bringUpToDate(entities, kyselyOn(connection), sqliteDialect)
    connection.exec('commit')
    return found
  } finally {
    // Takes an open transaction back.
    connection.close()
  }
}

/**
 * SQLite 3.7.0 to 3.51.2 can skip committed pages after a checkpoint that meets another program's commit
 * (sqlite.org/wal.html, "The WAL-Reset Bug").
 */
const oldestSqlite = '3.51.3'

function refuseOldSqlite(connection: Database.Database): void {
  const version = connection.prepare<[], string>('select sqlite_version()').pluck().get() as string
  if (version.localeCompare(oldestSqlite, 'en', { numeric: true }) < 0)
    throw new Error(`SQLite ${version} can lose committed changes: ${oldestSqlite} or newer is required`)
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
  entities: Entities,
): Promise<{ readonly connection: Database.Database; readonly schemaVersion: number }> {
  return closeOnError(openToRead(file), async connection => {
    const schemaVersion = await checkedVersion(entities, connection)
    if (schemaVersion === undefined) throw new NoStoreError('it is empty')
    return { connection, schemaVersion }
  })
}

/**
 * Returns the version of a store, or `undefined` if it is empty. Throws like {@link findVersion}, and if the schema is
 * not what the releases make: a trigger of somebody else would run within our changes.
 */
async function checkedVersion(entities: Entities, connection: Database.Database) {
  const version = await findVersion(entities, kyselyOn(connection), sqliteDialect)
  if (version === undefined) return undefined
  const found = objectsIn(connection)
  const made = await objectsOf(entities, version)
  const former = version < schemaVersionOf(entities) ? formerTriggersOf(entities) : []
  const isFormer = ({ type, name, table }: SchemaObject) =>
    type === 'trigger' && former.some(each => each.name === name && each.table === table)
  const wrong = [
    ...[...found].filter(([words, each]) => !made.has(words) && !isOfOthers(each) && !isFormer(each)),
    ...[...made].filter(([words]) => !found.has(words)),
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

const madeBefore = new WeakMap<Entities, Map<number, Promise<SchemaObjects>>>()

/** Returns what the migrations make up to a version. Making it takes 10 ms. */
function objectsOf(entities: Entities, version: number): Promise<SchemaObjects> {
  const made = madeBefore.get(entities) ?? new Map<number, Promise<SchemaObjects>>()
  madeBefore.set(entities, made)
  const objects = made.get(version) ?? makeObjects(entities, version)
  made.set(version, objects)
  return objects
}

async function makeObjects(entities: Entities, version: number): Promise<SchemaObjects> {
  const connection = new Database(':memory:')
  await bringUpToDate(entities, kyselyOn(connection), sqliteDialect, version)
  const objects = objectsIn(connection)
  connection.close()
  return objects
}

/** Earlier releases quoted and indented otherwise, and each store has a random default of its own. */
function describe({ type, name, table, sql }: SchemaObject): string {
  const words = (sql ?? '').replaceAll('"', '').replaceAll(/\s+/g, ' ')
  return `${type} ${name} ${table} ${words.replace(/\bversion integer default -?\d+/, 'version')}`
}

function formerTriggersOf(entities: Entities) {
  return Object.values(entities).flatMap(({ formerTriggers = [] }) => formerTriggers)
}

/** SQLite's figures for its planner, and the tables of Litestream. */
function isOfOthers({ type, name }: SchemaObject): boolean {
  return type === 'table' && /^(sqlite_stat[14]|_litestream_(seq|lock))$/.test(name)
}

function kyselyOn(database: Database.Database): Kysely<unknown> {
  return new Kysely<unknown>({ dialect: new SqliteDialect({ database }) })
}

import { existsSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import Database from 'better-sqlite3'
import type { Entities, Entity } from '../entity.ts'
import {
  isUnreadable,
  NoStoreError,
  reasonOf,
  StoreDamagedError,
  StoreInUseError,
} from '../errors.ts'
import { countsIn } from '../snapshot.ts'
import { filesOf, followLinks } from '../store-url.ts'
import type { BackupReport, CopyOptions, RestoreReport, StoreReport } from '../types.ts'
import { closeOnError, openExclusively } from './connection.ts'
import { forgetBackup, recordBackup } from './last-backup.ts'
import {
  createFileLike,
  createFolder,
  hideFromOthers,
  syncFile,
  syncFolder,
} from './private-file.ts'
import { replaceFile } from './replace-file.ts'
import { openReadOnly, type SqliteSnapshot } from './schema.ts'
import { createStoreId, setStoreId, storeIdOf } from './store-id.ts'
import { isFile, refuseForeignWal, refuseSecondPath } from './store-path.ts'

/** A copy that is to be made. */
interface Copy {
  /**
   * Its transaction is open until the copy is complete, because otherwise every change by
   * others would restart the copy.
   */
  readonly source: SqliteSnapshot
  readonly entities: Entities
  readonly options: CopyOptions
  /** The id of the copy. By default, it has the id of the source. */
  readonly storeId?: number
}

/** The file in whose place a restore puts the backup. */
type OldStore =
  | { readonly kind: 'none' }
  /** A file that SQLite cannot read. */
  | { readonly kind: 'unreadable' }
  /** A store that no other process has open. */
  | { readonly kind: 'readable'; readonly connection: Database.Database }

/**
 * How many pages are copied in one turn of the event loop, which takes a few
 * milliseconds.
 */
const turnPages = 1_000

/** Checks a store and counts its rows as of one moment, while others change it. */
export async function inspectSqlite(
  file: string,
  entities: Entities,
): Promise<Omit<StoreReport, 'store'>> {
  await using source = await openReadOnly(file, entities)
  checkPages(source.connection)
  const contents = await contentsOf(source, entities)
  return { bytes: sizeOf(file), ...contents }
}

export async function backUpSqlite(
  entities: Entities,
  file: string,
  target: string,
  options: CopyOptions,
): Promise<BackupReport> {
  const at = new Date()
  try {
    await using source = await openReadOnly(file, entities)
    const contents = await contentsOf(source, entities)
    const copy = { source, entities, options }
    if (options.createsFolder) {
      createFolder(dirname(resolve(target)))
    }
    const storeId = storeIdOf(source.connection)
    await replaceFile(target, options, partial => writeCopy(copy, partial, target))
    const report = { store: target, bytes: sizeOf(target), ...contents, storeId }
    return { ...report, ...recordIfPossible(file, at) }
  } catch (cause) {
    throw failure(`the store ${file} could not be backed up to ${target}`, cause)
  }
}

/** Records the time of a backup, and returns why that failed, if it did. */
function recordIfPossible(file: string, at: Date): Pick<BackupReport, 'unrecorded'> {
  try {
    recordBackup(file, at)
    return {}
  } catch (error) {
    return { unrecorded: reasonOf(error) }
  }
}

/** Copies a backup into the store, or in the place of a file that SQLite cannot read. */
export async function restoreSqlite(
  entities: Entities,
  store: string,
  named: string,
  options: CopyOptions,
): Promise<RestoreReport> {
  const report = await replaceStore(entities, store, named, options).catch(cause => {
    throw failure(`the store ${store} could not be restored from ${named}`, cause)
  })
  try {
    // A restore that fails leaves the store, and so the time of its last backup.
    forgetBackup(store)
  } catch (cause) {
    const outcome = `the store ${store} was restored, but the time of its last backup could not be removed`
    throw new Error(`${outcome}: ${reasonOf(cause)}`, { cause })
  }
  return report
}

async function replaceStore(
  entities: Entities,
  store: string,
  named: string,
  options: CopyOptions,
): Promise<RestoreReport> {
  const backup = followLinks(named)
  if (!isFile(backup)) {
    throw new Error('there is no such file')
  }
  createFolder(dirname(store))

  await using stack = new AsyncDisposableStack()
  // The store is opened before the long check of the backup, so that a store in use is
  // refused at once.
  const old = openOldStore(store)
  if (old.kind === 'readable') {
    stack.defer(() => void old.connection.close())
  }
  const isNew = old.kind === 'none'
  if (!isNew && !options.force) {
    throw new Error(
      `${store} already exists: use --force to replace it and lose the changes since the backup`,
    )
  }

  const source = stack.use(await openBackup(backup, entities))
  const contents = await contentsOf(source, entities)
  const changed = changesBetween(entities, source.connection, old)
  const copy = { source, entities, options, storeId: storeIdAfterRestore(old) }
  const isCopied = old.kind === 'readable' && (await copyInto(old.connection, copy))
  if (!isCopied) {
    const other = isNew ? dirname(store) : store
    await replaceFile(store, options, partial => writeCopy(copy, partial, other))
  }
  return { store, bytes: sizeOf(store), ...contents, isNew, changed }
}

/**
 * @throws StoreInUseError if another process has the store open, or Error if its path
 *   leads to something else than a file
 */
function openOldStore(store: string): OldStore {
  if (!isFile(store)) {
    return { kind: 'none' }
  }
  refuseSecondPath(store)
  refuseForeignWal(store)
  const connection = openExclusively(store)
  return connection === undefined
    ? { kind: 'unreadable' }
    : { kind: 'readable', connection }
}

/**
 * A store keeps its id, so that its older backups stay its own. In a new place it is
 * another store than the one that was backed up.
 */
function storeIdAfterRestore(old: OldStore): number {
  return old.kind === 'readable' ? storeIdOf(old.connection) : createStoreId()
}

/** Returns the size of a store in bytes, with its WAL. */
function sizeOf(file: string): number {
  let bytes = 0
  for (const path of filesOf(file)) {
    bytes += statSync(path, { throwIfNoEntry: false })?.size ?? 0
  }
  return bytes
}

function failure(summary: string, cause: unknown): Error {
  if (cause instanceof StoreInUseError) {
    return cause
  }
  return new Error(`${summary}: ${reasonOf(cause)}`, { cause })
}

/**
 * Copies a database into a store in one transaction of SQLite. No other process can open
 * the store in the meantime. Returns false for a store so damaged that nothing can be
 * copied into it.
 *
 * @param old the exclusive connection to the store, which is closed
 */
async function copyInto(old: Database.Database, copy: Copy): Promise<boolean> {
  const { name: store } = old
  // Without a WAL, the copy keeps others out. With one, it would share the store with a
  // server that starts in the meantime.
  old.exec('rollback')
  old.pragma('journal_mode = delete')
  old.close()

  const refuseWal: CopyOptions['onProgress'] = done => {
    if (existsSync(`${store}-wal`)) {
      throw new StoreInUseError(store)
    }
    copy.options.onProgress?.(done)
  }
  try {
    await copyPages(store, copy.source, { ...copy.options, onProgress: refuseWal })
  } catch (error) {
    if (isUnreadable(error)) {
      return false
    }
    throw error
  }

  giveCopyItsId(store, copy)
  // A power cut could bring the journal back, which undoes the copy.
  syncFile(store)
  syncFolder(dirname(store))
  hideFromOthers(store)
  return true
}

/**
 * Writes a copy to a new file, without a WAL, and checks it.
 *
 * @param other the file or folder whose owner and mode the copy gets
 */
async function writeCopy(copy: Copy, file: string, other: string): Promise<void> {
  createFileLike(file, other)
  await copyPages(file, copy.source, copy.options)
  copy.options.signal?.throwIfAborted()
  const connection = new Database(file)
  connection.pragma('journal_mode = delete')
  connection.close()
  giveCopyItsId(file, copy)
  await inspectSqlite(file, copy.entities)
}

function giveCopyItsId(file: string, { storeId }: Copy): void {
  if (storeId === undefined) {
    return
  }
  const connection = new Database(file)
  setStoreId(connection, storeId)
  connection.close()
}

/** Copies all pages or none. */
async function copyPages(
  target: string,
  source: SqliteSnapshot,
  options: CopyOptions,
): Promise<void> {
  const { totalPages } = await source.connection.backup(target, {
    progress({ totalPages, remainingPages }) {
      options.signal?.throwIfAborted()
      options.onProgress?.({ pages: totalPages - remainingPages, ofPages: totalPages })
      return turnPages
    },
  })
  // better-sqlite3 reports a target that another process has locked as a copy without
  // pages.
  if (totalPages === 0) {
    throw new StoreInUseError(target)
  }
}

async function contentsOf(
  source: SqliteSnapshot,
  entities: Entities,
): Promise<Pick<StoreReport, 'schemaVersion' | 'counts'>> {
  const counts = await countsIn(entities, source)
  return { schemaVersion: source.schemaVersion, counts }
}

async function openBackup(file: string, entities: Entities): Promise<SqliteSnapshot> {
  try {
    const backup = await openReadOnly(file, entities)
    closeOnError(backup.connection, checkPages)
    return backup
  } catch (cause) {
    if (isUnreadable(cause) || cause instanceof NoStoreError) {
      throw new Error(`${reasonOf(cause)}: try another backup`, { cause })
    }
    throw cause
  }
}

/** @throws StoreDamagedError with the first faults that SQLite finds */
function checkPages(connection: Database.Database): void {
  const check = connection.prepare<[], string>('pragma integrity_check(10)').pluck()
  const faults = check.all()
  if (faults[0] !== 'ok') {
    const inOneLine = faults.join('; ').replaceAll('\n', ' ')
    throw new StoreDamagedError(`it is damaged: ${inOneLine}`)
  }
}

/**
 * Compares the named rows of a backup with those of the store. Returns `undefined` if
 * those of the store cannot be read.
 */
function changesBetween(
  entities: Entities,
  backup: Database.Database,
  old: OldStore,
): RestoreReport['changed'] {
  if (old.kind === 'unreadable') {
    return undefined
  }
  // A new store loses nothing, as if it had had the rows of the backup.
  const store = old.kind === 'none' ? backup : old.connection
  try {
    const changes: Record<string, { again: string[]; lost: string[] }> = {}
    for (const [name, entity] of Object.entries(entities)) {
      if (entity.restoredBy !== undefined) {
        const inBackup = namesIn(entity, entity.restoredBy, backup)
        const inStore = namesIn(entity, entity.restoredBy, store)
        changes[name] = {
          again: namesWithout(inBackup, inStore),
          lost: namesWithout(inStore, inBackup),
        }
      }
    }
    return changes
  } catch {
    return undefined
  }
}

/** Returns the names of rows by key. */
function namesIn(
  { tables: [table] }: Entity,
  { key, name }: NonNullable<Entity['restoredBy']>,
  connection: Database.Database,
): ReadonlyMap<string, string> {
  // A store of an earlier version does not have every table.
  const tableRow = connection
    .prepare("select 1 from sqlite_schema where type = 'table' and name = ?")
    .get(table)
  if (tableRow === undefined) {
    return new Map()
  }

  const rows = connection
    .prepare<[], [string, string]>(
      `select "${key}", "${name}" from "${table}" order by "${name}"`,
    )
    .raw()
  return new Map(rows.all())
}

function namesWithout(
  names: ReadonlyMap<string, string>,
  others: ReadonlyMap<string, string>,
): string[] {
  const ownNames: string[] = []
  for (const [key, name] of names) {
    if (!others.has(key)) {
      ownNames.push(name)
    }
  }
  return ownNames
}

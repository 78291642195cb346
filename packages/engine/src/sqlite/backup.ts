import { existsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import Sqlite, { type Database } from 'better-sqlite3'
import type { Entities } from '../compile-entities.ts'
import {
  isUnreadable,
  NoStoreError,
  reasonOf,
  StoreDamagedError,
  StoreInUseError,
} from '../errors.ts'
import { contentsOf } from '../snapshot.ts'
import { filesOf, followLinks } from '../store-url.ts'
import type { StoreReport } from '../types.ts'
import { closeOnError, openExclusively, readColumn } from './connection.ts'
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
import { isFile, refuseForeignWal, refuseSecondPath, statIfAny } from './store-path.ts'
import { withReason } from './with-reason.ts'

export interface BackupReport<Entered extends Entities = Entities>
  extends StoreReport<Entered> {
  /** The id of the store, by which its backups are told from those of others. */
  readonly storeId: number
  /** Why the time of the backup could not be recorded beside the store, if so. */
  readonly unrecorded: string | undefined
}

export interface RestoreReport<Entered extends Entities = Entities>
  extends StoreReport<Entered> {
  /** Whether there was no store to replace. */
  readonly isNew: boolean
  /**
   * The changed rows of each entity with `restoredBy`. `undefined` if the replaced store
   * cannot be read.
   */
  readonly changed: Readonly<Record<string, RestoredRows>> | undefined
}

export interface RestoredRows {
  /** The names of rows that only the backup has. */
  readonly again: readonly string[]
  /** The names of rows that only the replaced store had. */
  readonly lost: readonly string[]
}

export interface CopyOptions {
  /** Replaces an existing target. */
  readonly force?: boolean
  /** Creates the folder of the target, once the store has turned out to be readable. */
  readonly createsFolder?: boolean
  readonly onProgress?: (done: {
    readonly pages: number
    readonly ofPages: number
  }) => void
  /** Stops the copy and removes what it has written. */
  readonly signal?: AbortSignal
}

/** A copy that is to be made. */
interface Copy extends CopyOptions {
  /**
   * Its transaction is open until the copy is complete, because otherwise every change by
   * others would restart the copy.
   */
  readonly source: SqliteSnapshot
  readonly entities: Entities
  /** The id that the copy gets. */
  readonly storeId: number
}

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
  const contents = await contentsOf(entities, source)
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
    const contents = await contentsOf(entities, source)
    if (options.createsFolder) {
      createFolder(dirname(resolve(target)))
    }
    const storeId = storeIdOf(source.connection)
    const copy = { source, entities, storeId, ...options }
    await replaceFile(target, options, partial => writeCopy(copy, partial, target))
    const report = { store: target, bytes: sizeOf(target), ...contents, storeId }
    return { ...report, unrecorded: recordBackup(file, at) }
  } catch (cause) {
    throw failure(`the store ${file} could not be backed up to ${target}`, cause)
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
) {
  const backup = followLinks(named)
  if (!isFile(backup)) {
    throw new Error('there is no such file')
  }

  await using stack = new AsyncDisposableStack()
  // The store is opened before the long check of the backup, so that a store in use is
  // refused at once.
  const isNew = !isFile(store)
  const old = isNew ? undefined : await withReason(() => openOldStore(store), store)
  stack.defer(() => void old?.close())
  if (!isNew && !options.force) {
    throw new Error(
      `${store} already exists: use --force to replace it and lose the changes since the backup`,
    )
  }

  const source = stack.use(await openBackup(backup, entities))
  const contents = await contentsOf(entities, source)
  // A new store loses nothing, as if it had had the rows of the backup.
  const before = isNew ? source.connection : old
  const changed = before && changesBetween(entities, source.connection, before)
  // A store keeps its id, so that its older backups stay its own. In a new place it is
  // another store than the one that was backed up.
  const storeId = old ? storeIdOf(old) : createStoreId()
  const copy = { source, entities, storeId, ...options }
  const isCopied = old !== undefined && (await copyInto(old, copy))
  if (!isCopied) {
    createFolder(dirname(store))
    const other = isNew ? dirname(store) : store
    await replaceFile(store, options, partial => writeCopy(copy, partial, other))
  }
  return { store, bytes: sizeOf(store), ...contents, isNew, changed }
}

/**
 * Opens the store that is replaced. Returns `undefined` if SQLite cannot read it.
 *
 * @throws StoreInUseError if another process has the store open
 */
function openOldStore(store: string) {
  refuseSecondPath(store)
  refuseForeignWal(store)
  return openExclusively(store)
}

/** Returns the size of a store in bytes, with its WAL. */
function sizeOf(file: string) {
  let bytes = 0
  for (const path of filesOf(file)) {
    bytes += statIfAny(path)?.size ?? 0
  }
  return bytes
}

function failure(summary: string, cause: unknown) {
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
async function copyInto(old: Database, copy: Copy) {
  const { name: store } = old
  // Without a WAL, the copy keeps others out. With one, it would share the store with a
  // server that starts in the meantime.
  old.exec('rollback')
  old.pragma('journal_mode = delete')
  old.close()

  const onProgress: CopyOptions['onProgress'] = done => {
    if (existsSync(`${store}-wal`)) {
      throw new StoreInUseError(store)
    }
    copy.onProgress?.(done)
  }
  try {
    await copyPages(store, { ...copy, onProgress })
  } catch (error) {
    if (isUnreadable(error)) {
      return false
    }
    throw error
  }

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
async function writeCopy(copy: Copy, file: string, other: string) {
  createFileLike(file, other)
  await copyPages(file, copy)
  copy.signal?.throwIfAborted()
  const connection = new Sqlite(file)
  connection.pragma('journal_mode = delete')
  connection.close()
  await inspectSqlite(file, copy.entities)
}

/** Copies all pages or none, and gives the copy its id. */
async function copyPages(target: string, { source, storeId, signal, onProgress }: Copy) {
  const { totalPages } = await source.connection.backup(target, {
    progress({ totalPages, remainingPages }) {
      signal?.throwIfAborted()
      onProgress?.({ pages: totalPages - remainingPages, ofPages: totalPages })
      return turnPages
    },
  })
  // better-sqlite3 reports a target that another process has locked as a copy without
  // pages.
  if (totalPages === 0) {
    throw new StoreInUseError(target)
  }

  const connection = new Sqlite(target)
  setStoreId(connection, storeId)
  connection.close()
}

async function openBackup(file: string, entities: Entities) {
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
function checkPages(connection: Database) {
  const faults = readColumn(connection, 'pragma integrity_check(10)')
  if (faults[0] !== 'ok') {
    const inOneLine = faults.join('; ').replaceAll('\n', ' ')
    throw new StoreDamagedError(`it is damaged: ${inOneLine}`)
  }
}

/**
 * Compares the named rows of a backup with those of the store. Returns `undefined` if
 * those of the store cannot be read.
 */
function changesBetween(entities: Entities, backup: Database, store: Database) {
  try {
    const changes: Record<string, RestoredRows> = {}
    for (const [name, entity] of Object.entries(entities)) {
      if (entity.restoredBy !== undefined) {
        const inBackup = namesIn(backup, entity.tables[0], entity.restoredBy)
        const inStore = namesIn(store, entity.tables[0], entity.restoredBy)
        changes[name] = {
          again: namesWithout(inBackup, inStore),
          lost: namesWithout(inStore, inBackup),
        }
      }
    }
    return changes
  } catch {
    return
  }
}

/** The names of rows by key. */
type Names = ReadonlyMap<string, string>

function namesIn(
  connection: Database,
  table: string,
  { key, name }: Record<'key' | 'name', string>,
) {
  // A store of an earlier version does not have every table.
  const tableRow = connection
    .prepare("select 1 from sqlite_schema where type = 'table' and name = ?")
    .get(table)
  if (tableRow === undefined) {
    return new Map()
  }

  const rows = connection
    .prepare<[], [string, string]>(
      `select "${key}", "${name}" from "${table}" order by 2`,
    )
    .raw()
  return new Map(rows.all())
}

function namesWithout(names: Names, others: Names) {
  return [...names].filter(([key]) => !others.has(key)).map(([, name]) => name)
}

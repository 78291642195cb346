import { existsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import Database from 'better-sqlite3'
import type { Entities, Entity } from '../entity.ts'
import { NoStoreError, StoreDamagedError, StoreInUseError } from '../errors.ts'
import { countsIn } from '../snapshot.ts'
import { filesOf, followLinks } from '../store-url.ts'
import type { BackupReport, CopyOptions, RestoreReport, StoreReport } from '../types.ts'
import { closeOnError, openExclusively } from './connection.ts'
import { forgetBackup, recordBackup } from './last-backup.ts'
import { createFileLike, createFolder, hideFromOthers, syncFile } from './private-file.ts'
import { isUnreadable, reasonOf } from './reasons.ts'
import { replaceFile } from './replace-file.ts'
import { openReadOnly } from './schema.ts'
import { createStoreId, setStoreId, storeIdOf } from './store-id.ts'
import { refuseForeignWal, refuseSecondPath } from './store-path.ts'

/** Checks a store and counts its rows as of one moment, while others change it. */
export async function inspectSqlite(
  file: string,
  entities: Entities,
): Promise<Omit<StoreReport, 'store'>> {
  await using source = await openReadOnly(file, entities)
  checkPages(source.connection)
  return { bytes: sizeOf(file), ...(await contentsOf(source, entities)) }
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
    const copyTo = copierOf(source, entities, options)
    await replaceFile(target, options, partial => copyTo(partial, target))
    const report = { store: target, bytes: sizeOf(target), ...contents }
    try {
      recordBackup(file, at)
      return report
    } catch (error) {
      return { ...report, unrecorded: reasonOf(error) }
    }
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
  let report: RestoreReport
  try {
    const backup = followLinks(named)
    if (!existsSync(backup)) {
      throw new Error('there is no such file')
    }
    createFolder(dirname(store))
    const isNew = !existsSync(store)
    if (!isNew) {
      refuseSecondPath(store)
      refuseForeignWal(store)
    }
    // Before the long check, so that a store in use is refused at once.
    const old = isNew ? undefined : openExclusively(store)
    await using stack = new AsyncDisposableStack()
    stack.defer(() => void old?.close())
    if (!isNew && !options.force) {
      throw new Error(
        `${store} already exists: use --force to replace it and lose the changes since the backup`,
      )
    }
    const source = stack.use(await openBackup(backup, entities))
    const contents = await contentsOf(source, entities)
    const changed = changesBetween(entities, source.connection, isNew ? 'none' : old)
    // The store keeps its id, so that its older backups stay its own. In a new place it is
    // another store than the one that was backed up.
    const storeId = old === undefined ? createStoreId() : storeIdOf(old)
    const copyTo = copierOf(source, entities, options, storeId)
    if (old === undefined || !(await copyInto(old, source, options, storeId))) {
      await replaceFile(store, options, partial =>
        copyTo(partial, isNew ? dirname(store) : store),
      )
    }
    report = { store, bytes: sizeOf(store), ...contents, isNew, changed }
  } catch (cause) {
    throw failure(`the store ${store} could not be restored from ${named}`, cause)
  }
  try {
    // Only now: a restore that fails leaves the store, and so its last backup.
    forgetBackup(store)
  } catch (cause) {
    const left = `the store ${store} was restored, but the time of its last backup could not be removed`
    throw new Error(`${left}: ${reasonOf(cause)}`, { cause })
  }
  return report
}

/** Returns the size of a store in bytes, with its WAL. */
function sizeOf(file: string): number {
  const sizes = filesOf(file).map(
    path => statSync(path, { throwIfNoEntry: false })?.size ?? 0,
  )
  return sizes.reduce((sum, size) => sum + size)
}

function failure(what: string, cause: unknown): Error {
  return cause instanceof StoreInUseError
    ? cause
    : new Error(`${what}: ${reasonOf(cause)}`, { cause })
}

/**
 * Copies a database into a store, which no other process can open meanwhile, in one transaction of SQLite. Returns
 * false for a store so damaged that nothing can be copied into it.
 *
 * @param old the exclusive connection to the store, which is closed
 */
async function copyInto(
  old: Database.Database,
  source: Source,
  options: CopyOptions,
  storeId: number,
): Promise<boolean> {
  const { name: store } = old
  // Without a WAL, the copy keeps others out. With one, it would share the store with a server that starts meanwhile.
  old.exec('rollback')
  old.pragma('journal_mode = delete')
  old.close()
  try {
    await copyPages(store, source, {
      ...options,
      onProgress(done) {
        if (existsSync(`${store}-wal`)) {
          throw new StoreInUseError(store)
        }
        options.onProgress?.(done)
      },
    })
  } catch (error) {
    if (isUnreadable(error)) {
      return false
    }
    throw error
  }
  const copy = new Database(store)
  setStoreId(copy, storeId)
  copy.close()
  // A power cut could bring the journal back, which undoes the copy.
  syncFile(store)
  syncFile(dirname(store))
  hideFromOthers(store)
  return true
}

/**
 * Returns a function that copies a database into a new file, checked and without a WAL, like
 * another file or folder.
 *
 * @param storeId of the copy. By default, it has the id of the source
 */
const copierOf =
  (source: Source, entities: Entities, options: CopyOptions, storeId?: number) =>
  async (file: string, other: string) => {
    createFileLike(file, other)
    await copyPages(file, source, options)
    options.signal?.throwIfAborted()
    const copy = new Database(file)
    copy.pragma('journal_mode = delete')
    if (storeId !== undefined) {
      setStoreId(copy, storeId)
    }
    copy.close()
    await inspectSqlite(file, entities)
  }

/** Pages in one turn of the event loop: a few milliseconds. */
const turnPages = 1_000

/** Copies all pages or none. */
async function copyPages(
  target: string,
  source: Source,
  options: CopyOptions,
): Promise<void> {
  const { totalPages: copied } = await source.connection.backup(target, {
    progress({ totalPages, remainingPages }) {
      options.signal?.throwIfAborted()
      options.onProgress?.({ pages: totalPages - remainingPages, ofPages: totalPages })
      return turnPages
    },
  })
  // better-sqlite3 takes a target that another process has locked for a copy without pages.
  if (copied === 0) {
    throw new StoreInUseError(target)
  }
}

/**
 * A store or backup as of one moment, whatever others change. Its transaction is held until a copy is complete: otherwise
 * every change by others would restart the copy.
 */
type Source = Awaited<ReturnType<typeof openReadOnly>>

async function contentsOf(source: Source, entities: Entities) {
  return { schemaVersion: source.schemaVersion, counts: await countsIn(entities, source) }
}

async function openBackup(file: string, entities: Entities): Promise<Source> {
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

function checkPages(connection: Database.Database): void {
  const found = connection.prepare('pragma integrity_check(10)').pluck().all() as string[]
  if (found[0] !== 'ok') {
    throw new StoreDamagedError(
      `it is damaged: ${found.join('; ').replaceAll('\n', ' ')}`,
    )
  }
}

/** Compares the named rows of a backup with those of the store. `undefined` if the store's cannot be read. */
function changesBetween(
  entities: Entities,
  backup: Database.Database,
  store: Database.Database | 'none' | undefined,
): RestoreReport['changed'] {
  try {
    const changes: Record<string, { again: string[]; lost: string[] }> = {}
    for (const [name, entity] of Object.entries(entities)) {
      if (entity.restoredBy === undefined) {
        continue
      }
      const kept = namesIn(entity, backup)
      const old = store === 'none' ? kept : namesIn(entity, store as Database.Database)
      changes[name] = { again: namesWithout(kept, old), lost: namesWithout(old, kept) }
    }
    return changes
  } catch {
    return undefined
  }
}

/** Returns the names of rows by key. */
function namesIn(
  { tables: [table], restoredBy }: Entity,
  connection: Database.Database,
): ReadonlyMap<string, string> {
  const { key, name } = restoredBy as NonNullable<typeof restoredBy>
  // A store of an earlier version does not have every table.
  const isThere = connection
    .prepare("select 1 from sqlite_schema where type = 'table' and name = ?")
    .get(table)
  if (isThere === undefined) {
    return new Map()
  }
  const rows = connection.prepare<[], [string, string]>(
    `select "${key}", "${name}" from "${table}" order by "${name}"`,
  )
  return new Map(rows.raw().all())
}

function namesWithout(
  names: ReadonlyMap<string, string>,
  others: ReadonlyMap<string, string>,
): string[] {
  return [...names].filter(([key]) => !others.has(key)).map(([, name]) => name)
}

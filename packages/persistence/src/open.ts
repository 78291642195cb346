import { type Stats, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { defaultGroupCommitLimits } from './commit/group-commit.ts'
import { fileReason, NoStoreError } from './errors.ts'
import { createReader, type ReadTransaction } from './repositories/reader.ts'
import type {
  CopyOptions,
  EngineOptions,
  RestoreReport,
  Salvage,
  ShareableStorage,
  SharedStorage,
  Storage,
  StorageObserver,
  StorageOptions,
  StoreReader,
  StoreReport,
} from './storage.ts'
import { followLinks, parseStoreUrl, type StoreLocation, storageName } from './store-url.ts'

/** What this package needs of a database. */
interface Engine {
  open(options: EngineOptions): Promise<ShareableStorage>
  /** Begins to read a store of any known version, which it keeps. @throws NoStoreError if it is empty */
  read(): Promise<ReadTransaction>
  inspect(): Promise<Omit<StoreReport, 'store'>>
}

const timeoutMsDefault = 5_000

/**
 * Opens a store, and creates or migrates it if needed.
 *
 * @throws Error in one line if the store is unavailable; it is then unchanged
 */
export function openStorage({
  url,
  timeoutMs = timeoutMsDefault,
  lockTimeoutMs = 5_000,
  readConnectionsMax = 4,
  onCommit,
  onStateChange,
  ...given
}: StorageOptions): Promise<ShareableStorage> {
  const limits = { ...defaultGroupCommitLimits, ...given }
  return withEngine(url, engine =>
    engine.open({ limits, timeoutMs, lockTimeoutMs, readConnectionsMax, onCommit, onStateChange }),
  )
}

/** Attaches this thread to a storage of another thread. Disposal leaves the storage open there. */
export async function attachStorage(shared: SharedStorage, observer: StorageObserver = {}): Promise<Storage> {
  switch (shared.kind) {
    case 'file':
      return (await import('./sqlite/engine.ts')).attachSqlite(shared, observer)
    case 'postgres':
      return (await import('./postgres/engine.ts')).attachPostgres(shared, observer)
  }
}

/** Opens a store to read what it has as of now. Changes nothing. @throws NoStoreError, or Error if it is unreadable */
export function openReader(url: string): Promise<StoreReader> {
  return withExisting(url, async engine => createReader(await engine.read()))
}

/** Opens a damaged file to read every plant that is still readable. Changes nothing. @throws Error if nothing is readable */
export async function openSalvage(url: string): Promise<Salvage> {
  const file = existing(fileOf(url))
  return (await import('./sqlite/salvage.ts')).openSqliteSalvage(file)
}

/**
 * Checks a store or a backup: every page of a file, or the row counts of a database. Rejects if it does not exist, is
 * damaged, or a newer release wrote it.
 */
export function inspectStore(url: string): Promise<StoreReport> {
  return withExisting(url, async engine => ({
    store: storageName(url),
    ...(await engine.inspect()),
  }))
}

/**
 * Copies a store as of now, while others change it. The copy is checked and durable.
 *
 * @throws StoreInUseError if the target is a store in use, or Error; the target is then unchanged
 */
export async function backUpStore(
  url: string,
  target: string,
  options: CopyOptions = {},
): Promise<StoreReport> {
  const file = existing(fileOf(url))
  return (await import('./sqlite/backup.ts')).backUpSqlite(file, target, options)
}

/**
 * Replaces a store, which may not exist, with a backup in one step, after checking the backup.
 *
 * @throws StoreInUseError or Error; the store is then unchanged
 */
export async function restoreStore(
  url: string,
  backup: string,
  options: CopyOptions = {},
): Promise<RestoreReport> {
  return (await import('./sqlite/backup.ts')).restoreSqlite(fileOf(url), backup, options)
}

/**
 * Writes a file completely or not at all: beside its target, to disk, and then onto the target in one step.
 *
 * @param named the file, or a symbolic link to it
 * @param write makes the file, at a path in the same folder
 * @throws StoreInUseError if the target is a store that a process has open, or Error; the old file is then intact
 */
export async function replaceFile<Result>(
  named: string,
  options: Pick<CopyOptions, 'force'>,
  write: (partial: string) => Promise<Result>,
): Promise<Result> {
  return (await import('./sqlite/files.ts')).replaceFile(named, options, write)
}

async function withExisting<Opened>(url: string, open: (engine: Engine) => Promise<Opened>): Promise<Opened> {
  const location = parseStoreUrl(url)
  if (location.kind === 'file') existing(location.file)
  return withEngine(url, open)
}

/** @throws Error that names the store if it cannot be opened */
async function withEngine<Opened>(url: string, open: (engine: Engine) => Promise<Opened>): Promise<Opened> {
  return engineOf(parseStoreUrl(url))
    .then(open)
    .catch(cause => {
      const message = `the store ${storageName(url)} cannot be opened: ${cause.message}`
      throw cause instanceof NoStoreError ? new NoStoreError(message) : new Error(message, { cause })
    })
}

/** Imports only this database's engine and driver. */
async function engineOf(location: StoreLocation): Promise<Engine> {
  switch (location.kind) {
    case 'file':
      return (await import('./sqlite/engine.ts')).createSqliteEngine(followLinks(location.file))
    case 'postgres':
      return (await import('./postgres/engine.ts')).createPostgresEngine({
        ...location,
        timeoutMs: timeoutMsDefault,
      })
  }
}

function fileOf(url: string): string {
  const location = parseStoreUrl(url)
  if (location.kind === 'file') return followLinks(location.file)
  throw new Error(`${storageName(url)} is not a file: use pg_dump to back it up, and pg_restore`)
}

/** @throws NoStoreError, or Error if the system does not say, such as for want of permission */
function existing(file: string): string {
  let stat: Stats | undefined
  try {
    stat = statSync(file, { throwIfNoEntry: false })
  } catch (cause) {
    throw new Error(`the store ${resolve(file)} cannot be opened: ${fileReason(cause)}`, { cause })
  }
  if (stat === undefined) throw new NoStoreError(`there is no store at ${resolve(file)}`)
  if (stat.isDirectory()) throw new Error(`${resolve(file)} is a folder`)
  return file
}

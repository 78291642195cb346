import { existsSync } from 'node:fs'
import type { PlantArchive } from './archive.ts'
import { defaultGroupCommitLimits, type GroupCommitLimits } from './group-commit.ts'
import { reasonOf } from './sqlite/reason.ts'
import {
  type CommitObserver,
  type CopyOptions,
  type Engine,
  type RestoreReport,
  type SharedStorage,
  type StateObserver,
  type Storage,
  StoreInUseError,
  type StoreReport,
  type StoreSnapshot,
} from './storage.ts'
import { parseStoreUrl, type StoreLocation, storageName } from './store-url.ts'

export interface StorageOptions extends Partial<GroupCommitLimits>, CommitObserver, StateObserver {
  /** As `parseStoreUrl` takes it. */
  readonly url: string
  /** Refuses to create a file that does not exist. */
  readonly mustExist?: boolean
  /** PostgreSQL: how long anything may take before it is `store-unavailable`. */
  readonly timeoutMs?: number
  /** PostgreSQL: connections for reading. One more is for changes. */
  readonly readConnectionsMax?: number
}

const timeoutMsDefault = 5_000
const readConnectionsMaxDefault = 4

/**
 * Opens a store. Creates it and brings its schema up to date where needed.
 *
 * @throws Error in one line when the store can't be used; what is there is left as it was
 */
export function openStorage({
  url,
  mustExist = false,
  timeoutMs = timeoutMsDefault,
  readConnectionsMax = readConnectionsMaxDefault,
  onCommit,
  onStateChange,
  ...given
}: StorageOptions): Promise<Storage> {
  const limits = { ...defaultGroupCommitLimits, ...given }
  return withEngine({ url, mustExist }, engine =>
    engine.open({ limits, timeoutMs, readConnectionsMax }, { onCommit, onStateChange }),
  )
}

/** Attaches this thread to a storage that another one shares. Disposing of it leaves the storage open there. */
export async function attachStorage(
  shared: SharedStorage,
  observer: CommitObserver & StateObserver = {},
): Promise<Storage> {
  return shared.kind === 'file'
    ? (await import('./sqlite/engine.ts')).attachSqlite(shared, observer)
    : (await import('./postgres/engine.ts')).attachPostgres(shared, observer)
}

/**
 * Opens a store for loading and reading it as a whole, beside the servers that use it. Creates it and brings its schema
 * up to date where needed.
 *
 * @throws Error in one line when the store can't be used; what is there is left as it was
 */
export function openArchive(url: string): Promise<PlantArchive & AsyncDisposable> {
  return withEngine({ url, mustExist: false }, engine => engine.archive())
}

/**
 * Opens all the plants of a store as they are at this moment. Changes nothing, not even the schema.
 *
 * @throws Error in one line when there is no store, or it can't be read
 */
export function openSnapshot(url: string): Promise<StoreSnapshot> {
  return withEngine({ url, mustExist: true }, engine => engine.snapshot())
}

/**
 * Checks a store or a backup: a file to its last page, a database as far as its rows can be counted.
 *
 * @throws Error in one line when there is none, it is damaged, or a newer version of this software wrote it
 */
export function inspectStore(url: string): Promise<StoreReport> {
  return withEngine({ url, mustExist: true }, async engine => ({
    store: storageName(url),
    ...(await engine.inspect()),
  }))
}

/**
 * Copies a store as it is at this moment, while others change it. The copy is checked and durable.
 *
 * @throws StoreInUseError when the target is a store in use, or Error in one line; the target is then as it was
 */
export async function backUpStore(
  url: string,
  target: string,
  options: CopyOptions = {},
): Promise<StoreReport> {
  const file = existing(fileOf(url))
  const { backUpSqlite } = await import('./sqlite/backup.ts')
  return backUpSqlite(file, target, options).catch(
    failed(`the store ${file} could not be backed up to ${target}`),
  )
}

/**
 * Puts a backup in the place of a store, which may be missing, in one step and once the copy of it has been checked.
 *
 * @throws StoreInUseError, or Error in one line; the store is then as it was
 */
export async function restoreStore(
  url: string,
  backup: string,
  options: CopyOptions = {},
): Promise<RestoreReport> {
  const file = fileOf(url)
  const { restoreSqlite } = await import('./sqlite/backup.ts')
  return restoreSqlite(file, backup, options).catch(
    failed(`the store ${file} could not be restored from ${backup}`),
  )
}

/** @throws Error that names the store when it could not be opened */
async function withEngine<Opened>(
  { url, mustExist }: { readonly url: string; readonly mustExist: boolean },
  open: (engine: Engine) => Promise<Opened>,
): Promise<Opened> {
  const location = parseStoreUrl(url)
  if (mustExist && location.kind === 'file') existing(location.file)
  return engineOf(location)
    .then(open)
    .catch(cause => {
      throw new Error(`the store ${storageName(url)} can not be opened: ${cause.message}`, { cause })
    })
}

/** The one place that chooses a database. Only its engine is loaded, and its driver with it. */
async function engineOf(location: StoreLocation): Promise<Engine> {
  switch (location.kind) {
    case 'file':
      return (await import('./sqlite/engine.ts')).createSqliteEngine(location.file)
    case 'memory':
      return (await import('./sqlite/memory-engine.ts')).createMemoryEngine()
    case 'hosts':
      return (await import('./postgres/engine.ts')).createPostgresEngine(location.hosts, timeoutMsDefault)
  }
}

function fileOf(url: string): string {
  const location = parseStoreUrl(url)
  if (location.kind === 'file') return location.file
  throw new Error(`${storageName(url)} is not a file: use pg_dump to back it up, and pg_restore`)
}

function existing(file: string): string {
  if (!existsSync(file)) throw new Error(`there is no store at ${file}`)
  return file
}

function failed(what: string): (cause: unknown) => never {
  return cause => {
    if (cause instanceof StoreInUseError) throw cause
    throw new Error(`${what}: ${reasonOf(cause)}`, { cause })
  }
}

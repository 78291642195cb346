import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { MessagePort } from 'node:worker_threads'
import type { PlantArchive } from './archive.ts'
import { type Commit, type CommitQueueLimits, defaultCommitQueueLimits } from './commit-queue.ts'
import { logSuffixes } from './replace-file.ts'
import { reasonOf } from './sqlite/reason.ts'
import {
  type CommitObserver,
  type CopyOptions,
  type RestoreReport,
  type StateObserver,
  type Storage,
  StoreInUseError,
  type StoreReport,
  type StoreSnapshot,
} from './storage.ts'
import type { StorageLink } from './storage-link.ts'

export type { LoadOutcome, OnTaken, PlantArchive, PlantSnapshot, StagedLoad } from './archive.ts'
export { explain } from './outage.ts'
export { replaceFile } from './replace-file.ts'
export {
  type CommitObserver,
  type CopyOptions,
  OutcomeUnknownError,
  type RestoreReport,
  type StateObserver,
  type Storage,
  StoreInUseError,
  type StoreReport,
  type StoreSnapshot,
  type StoreState,
} from './storage.ts'
export type { Commit, CommitQueueLimits, StorageLink }

/** The store of those who name none, in the working directory. */
export const defaultStoreUrl = 'file:data/plant-store.db'

/** What has to be in the transfer list when a link goes to another thread by `postMessage`. */
export function portsOf(link: StorageLink): MessagePort[] {
  return 'writer' in link ? [link.writer] : []
}

export interface StorageOptions extends Partial<CommitQueueLimits>, CommitObserver, StateObserver {
  /**
   * `file:` and a path (relative to the working directory, or `file:///` and an absolute one), or `file::memory:`, or
   * `postgres://user:password@host:port/database`, with as many hosts as there are, separated by commas.
   */
  readonly url: string
  /** For a file: refuses to make a store where there is none. */
  readonly mustExist?: boolean
  /** For PostgreSQL: how long anything may take before it is `store-unavailable`. */
  readonly timeoutMs?: number
  /** For PostgreSQL: connections for reading; one more is for writing. */
  readonly readConnectionsMax?: number
}

/**
 * Opens a store, making it and bringing its schema up to date where needed.
 *
 * @throws Error in one clear line when the store can't be used; what is there is then left as it was
 */
export async function openStorage({
  url,
  mustExist = false,
  timeoutMs = timeoutMsDefault,
  readConnectionsMax = 4,
  onCommit,
  onStateChange,
  ...given
}: StorageOptions): Promise<Storage> {
  const limits = { ...defaultCommitQueueLimits, ...given }
  const observer = { onCommit, onStateChange }
  if (mustExist && !isPostgres(url)) existingFile(url)
  return opening(url, async () => {
    // Only the one database's adapter is loaded, with its driver.
    if (!isPostgres(url)) {
      const { openSqlite } = await import('./sqlite/open.ts')
      return openSqlite(sqliteFile(url), limits, observer)
    }
    const { openPostgres } = await import('./postgres/open.ts')
    return openPostgres({ ...serverOptions(url), timeoutMs, readConnectionsMax }, limits, observer)
  })
}

/** The store that another thread has opened, for this thread; disposing of it leaves the store open there. */
export async function joinStorage(
  link: StorageLink,
  observer: CommitObserver & StateObserver = {},
): Promise<Storage> {
  return 'writer' in link
    ? (await import('./sqlite/storage.ts')).joinSqlite(link, observer)
    : (await import('./postgres/storage.ts')).joinPostgres(link, observer)
}

/**
 * What a URL names, in words that hold no password: for messages and logs.
 *
 * @throws Error when no store can have such a URL
 */
export function storageName(url: string): string {
  if (!isPostgres(url)) return sqliteFile(url)
  const [first = ''] = postgresHosts(url)
  const { username, pathname } = new URL(first)
  const hosts = postgresHosts(url).map(host => new URL(host).host)
  return `postgres://${username && `${username}@`}${hosts.join(',')}${pathname}`
}

const isPostgres = (url: string) => /^postgres(ql)?:/.test(url)

const timeoutMsDefault = 5_000

const serverOptions = (url: string) => ({ hosts: postgresHosts(url), timeoutMs: timeoutMsDefault })

/**
 * A PostgreSQL URL for each host that a URL names: libpq knows several in one, the standard for URLs does not.
 *
 * @throws Error when it is not such a URL
 */
function postgresHosts(url: string): string[] {
  const [, credentials = '', hosts = '', rest = ''] =
    /^postgres(?:ql)?:\/\/([^@/?#]*@)?([^@/?#]*)([/?][^#]*)?$/.exec(url) ?? []
  const urls = hosts.split(',').map(host => `postgres://${credentials}${host}${rest}`)
  const isSocket = hosts === '' && /[?&]host=./.test(rest)
  if (!(isSocket || hosts.split(',').every(Boolean)) || !urls.every(each => URL.canParse(each))) {
    throw new Error(
      'must be like postgres://user:password@host:5432/database, with special characters percent-encoded',
    )
  }
  return urls
}

/**
 * Opens a store for loading and reading it as a whole, beside the servers that have it open. A store that isn't there
 * is made, one of an earlier version is brought up to date.
 *
 * @throws Error in one clear line when the store can't be used; what is there is then left as it was
 */
export async function openArchive(url: string): Promise<PlantArchive & AsyncDisposable> {
  return opening(url, async () => {
    if (!isPostgres(url)) return (await import('./sqlite/archive.ts')).openSqliteArchive(sqliteFile(url))
    return (await import('./postgres/archive.ts')).openPostgresArchive(serverOptions(url))
  })
}

/**
 * All the plants of a store as they are at this moment. The store is not changed, not even brought up to date.
 *
 * @throws Error in one clear line when there is no store, or one that can't be read
 */
export async function openSnapshot(url: string): Promise<StoreSnapshot> {
  if (!isPostgres(url)) existingFile(url)
  return opening(url, async () => {
    if (!isPostgres(url)) return (await import('./sqlite/snapshot.ts')).openSqliteSnapshot(sqliteFile(url))
    return (await import('./postgres/archive.ts')).openPostgresSnapshot(serverOptions(url))
  })
}

/**
 * Checks a store, or a backup of one: a file to its last page, a database as far as what is in it can be counted.
 *
 * @throws Error in one clear line when there is none, it is damaged, or a newer version of this software wrote it
 */
export async function inspectStore(url: string): Promise<StoreReport> {
  if (!isPostgres(url)) existingFile(url)
  return opening(url, async () => {
    if (!isPostgres(url)) return (await import('./sqlite/store-file.ts')).inspectSqlite(sqliteFile(url))
    const { inspectPostgres } = await import('./postgres/archive.ts')
    return { store: storageName(url), ...(await inspectPostgres(serverOptions(url))) }
  })
}

/**
 * Copies a store, as it is at this moment, while others change it. The copy is checked, and durable.
 *
 * @param target where to put it
 * @throws StoreInUseError when the target is a store that is in use, or Error in one clear line; what was there is then still there
 */
export async function backUpStore(
  url: string,
  target: string,
  options: CopyOptions = {},
): Promise<StoreReport> {
  const file = existingFile(url)
  const { backUpSqlite } = await import('./sqlite/store-file.ts')
  try {
    return await backUpSqlite(file, target, options)
  } catch (cause) {
    if (cause instanceof StoreInUseError) throw cause
    throw new Error(`the store ${file} could not be backed up to ${target}: ${reasonOf(cause)}`, { cause })
  }
}

/**
 * Puts a backup in the place of a store, which may be missing, in one step and once the copy of it has been checked.
 *
 * @throws StoreInUseError, or Error in one clear line; the store is then as it was
 */
export async function restoreStore(
  url: string,
  backup: string,
  options: CopyOptions = {},
): Promise<RestoreReport> {
  const file = storeFile(url)
  const { restoreSqlite } = await import('./sqlite/store-file.ts')
  try {
    return await restoreSqlite(file, backup, options)
  } catch (cause) {
    if (cause instanceof StoreInUseError) throw cause
    throw new Error(`the store ${file} could not be restored from ${backup}: ${reasonOf(cause)}`, { cause })
  }
}

/** The files that a store is in, or comes to be in while it is used; none where it is in a database. */
export function storeFiles(url: string): readonly string[] {
  if (isPostgres(url)) return []
  return ['', ...logSuffixes].map(suffix => `${sqliteFile(url)}${suffix}`)
}

/**
 * The file that a store is.
 *
 * @throws Error when it is none
 */
function storeFile(url: string): string {
  const name = storageName(url)
  if (isPostgres(url)) throw new Error(`${name} is not a file: use pg_dump to back it up, and pg_restore`)
  return sqliteFile(url)
}

function existingFile(url: string): string {
  const file = storeFile(url)
  if (!existsSync(file)) throw new Error(`there is no store at ${file}`)
  return file
}

/** @throws Error that names the store when it could not be opened */
async function opening<Opened>(url: string, open: () => Promise<Opened>): Promise<Opened> {
  try {
    return await open()
  } catch (cause) {
    throw new Error(`the store ${storageName(url)} can not be opened: ${(cause as Error).message}`, { cause })
  }
}

/**
 * The file that a `file:` URL means.
 *
 * @throws Error when it is not such a URL
 */
export function sqliteFile(url: string): string {
  const path = /^file:([^?#]+)$/.exec(url)?.[1]
  if (path === undefined || /^\/\/(?!\/)/.test(path)) {
    throw new Error(
      'must be file: and a path (with %3F for ? and %23 for #), such as file:data/plant-store.db, or like postgres://user:password@host:5432/database',
    )
  }
  return path.startsWith('///') ? fileURLToPath(url) : decodeURIComponent(path)
}

import { fileURLToPath } from 'node:url'
import type { MessagePort } from 'node:worker_threads'
import type { TokenRepository } from '@plant-store/access'
import type { PlantRepository } from '@plant-store/domain'
import { type CommitQueueLimits, defaultCommitQueueLimits } from './commit-queue.ts'
import type { PostgresLink } from './postgres/storage.ts'
import type { SqliteLink } from './sqlite/storage.ts'

export type { CommitQueueLimits }

/** A store that is open. Disposing of it writes what still waits, and closes it. */
export interface Storage extends AsyncDisposable {
  readonly plants: PlantRepository
  readonly tokens: TokenRepository
  /** @throws DomainError `store-unavailable` when it can't be read or written at the moment */
  check(): Promise<void>
  /** A way for another thread to use the same store; missing where the store can't be shared (one in memory). */
  readonly link?: () => StorageLink
}

/** Goes to another thread by `postMessage`, with {@link portsOf} in the transfer list. */
export type StorageLink = SqliteLink | PostgresLink

export function portsOf(link: StorageLink): MessagePort[] {
  return 'writer' in link ? [link.writer] : []
}

export interface StorageOptions extends Partial<CommitQueueLimits> {
  /**
   * `file:` and a path (relative to the working directory, or `file:///` and an absolute one), or `file::memory:`, or
   * `postgres://user:password@host:port/database`, with as many hosts as there are, separated by commas.
   */
  readonly url: string
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
  timeoutMs = 5_000,
  readConnectionsMax = 4,
  ...given
}: StorageOptions): Promise<Storage> {
  const name = storageName(url)
  const limits = { ...defaultCommitQueueLimits, ...given }
  try {
    // Loaded by those who need it only: one database, and Kysely for who opens a store but not for who joins.
    if (isPostgres(url)) {
      const { openPostgres } = await import('./postgres/open.ts')
      return await openPostgres({ hosts: postgresHosts(url), timeoutMs, readConnectionsMax }, limits)
    }
    const { openSqlite } = await import('./sqlite/open.ts')
    return await openSqlite(sqliteFile(url), limits)
  } catch (cause) {
    throw new Error(`the store ${name} can not be opened: ${(cause as Error).message}`, { cause })
  }
}

/** The store that another thread has opened, for this thread; disposing of it leaves the store open there. */
export async function joinStorage(link: StorageLink): Promise<Storage> {
  return 'writer' in link
    ? (await import('./sqlite/storage.ts')).joinSqlite(link)
    : (await import('./postgres/storage.ts')).joinPostgres(link)
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
 * The file that a `file:` URL means.
 *
 * @throws Error when it is not such a URL
 */
export function sqliteFile(url: string): string {
  if (url.startsWith('file:///')) return fileURLToPath(url)
  const path = /^file:([^?#]+)$/.exec(url)?.[1]
  if (path === undefined || path.startsWith('//')) {
    throw new Error(
      'must be file: and a path, such as file:data/plant-store.db, or like postgres://user:password@host:5432/database',
    )
  }
  return decodeURIComponent(path)
}

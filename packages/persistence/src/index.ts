import { fileURLToPath } from 'node:url'
import type { MessagePort } from 'node:worker_threads'
import type { TokenRepository } from '@plant-store/access'
import type { PlantRepository } from '@plant-store/domain'
import { type CommitQueueLimits, defaultCommitQueueLimits } from './commit-queue.ts'
import { joinSqlite } from './sqlite/storage.ts'
import type { Statements } from './statements.ts'

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

/** Goes to another thread by `postMessage`, with its port in the transfer list. */
export interface StorageLink {
  readonly file: string
  readonly statements: Statements
  readonly writer: MessagePort
  readonly limits: CommitQueueLimits
}

export interface StorageOptions extends Partial<CommitQueueLimits> {
  /** `file:` and a path (relative to the working directory, or `file:///` and an absolute one), or `file::memory:`. */
  readonly url: string
}

/**
 * Opens a store, making it and bringing its schema up to date where needed.
 *
 * @throws Error in one clear line when the store can't be used; what is there is then left as it was
 */
export async function openStorage({ url, ...limits }: StorageOptions): Promise<Storage> {
  const file = sqliteFile(url)
  // Loaded by those who open a store only: it brings Kysely, which nobody needs who joins.
  const { openSqlite } = await import('./sqlite/open.ts')
  try {
    return await openSqlite(file, { ...defaultCommitQueueLimits, ...limits })
  } catch (cause) {
    throw new Error(`the store ${file} can not be opened: ${(cause as Error).message}`, { cause })
  }
}

/** The store that another thread has opened, for this thread; disposing of it leaves the store open there. */
export function joinStorage(link: StorageLink): Storage {
  return joinSqlite(link)
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
    throw new Error('must be file: and a path, such as file:data/plant-store.db')
  }
  return decodeURIComponent(path)
}

import type { MessagePort } from 'node:worker_threads'
import type { TokenRepository } from '@plant-store/access'
import type { Plant, PlantRepository } from '@plant-store/domain'
import type { Outbox, WebhookRepository } from '@plant-store/webhooks'
import type { PoolMode } from './store-url.ts'

// Without the drivers' types: importers of this package do not have them.

export interface StorageOptions extends Partial<Omit<EngineOptions, 'limits'> & GroupCommitLimits> {
  /** In the form of `parseStoreUrl`. */
  readonly url: string
}

export interface GroupCommitLimits {
  /** Pending changes. Beyond it, `store-busy`. */
  readonly queueChangesMax: number
  /** The text of all pending changes in UTF-16 code units. A single change may have more. */
  readonly queueTextCharsMax: number
  /** Changes of a group, unless more were submitted together, and on SQLite of a transaction of several groups. */
  readonly transactionChangesMax: number
}

export interface EngineOptions extends StorageObserver {
  readonly limits: GroupCommitLimits
  /** PostgreSQL: after this time any operation is `store-unavailable`. */
  readonly timeoutMs: number
  /** SQLite: how long an opening or a change waits for the lock of another process. Then it fails. */
  readonly lockTimeoutMs: number
  /** PostgreSQL: connections for reading. Changes use one more. */
  readonly readConnectionsMax: number
}

export interface Commit {
  /** The changes in this commit. */
  readonly changes: number
  /** From the start of the transaction until it is durable. */
  readonly ms: number
}

export interface StorageObserver {
  /** Called once for every commit. If threads share it, only one of them calls. */
  readonly onCommit?: ((commit: Commit) => void) | undefined
  /** Called when a store begins to fail, when the reason changes, and when it works again. It begins as working. */
  readonly onStateChange?: ((state: StoreState) => void) | undefined
}

export type StoreState = { readonly ready: true } | { readonly ready: false; readonly reason: string }

/** An open store. Disposal writes pending changes and closes it. */
export interface Storage extends AsyncDisposable {
  readonly plants: PlantRepository
  readonly tokens: TokenRepository
  readonly webhooks: WebhookRepository
  readonly outbox: Outbox
  /** @throws DomainError `store-unavailable` if it cannot be read or written */
  check(): Promise<void>
  /** Returns the number of pending changes. */
  pending(): number
}

export interface ShareableStorage extends Storage {
  /** The schema version before it was opened: `undefined` if opening it created the store. */
  readonly versionBefore: number | undefined
  /** The schema version that it has now. */
  readonly schemaVersion: number
  /** Shares the storage with another thread, which attaches to it. */
  share(): SharedStorage
}

/** Plain data and MessagePorts, for `postMessage` with {@link transferListOf}. */
export type SharedStorage = SharedSqlite | SharedPostgres

export interface SharedSqlite {
  readonly kind: 'file'
  readonly file: string
  /** To the writer, for single changes and for bulk ones. */
  readonly single: MessagePort
  readonly bulk: MessagePort
  readonly limits: GroupCommitLimits
}

export interface SharedPostgres {
  readonly kind: 'postgres'
  readonly server: PostgresOptions
  /** For each thread. */
  readonly readConnectionsMax: number
  readonly limits: GroupCommitLimits
}

export interface PostgresOptions {
  /** A URL for each host. Only the writable one is used. */
  readonly hosts: readonly string[]
  /** Of a pooler in between. Without one, `session`. */
  readonly poolMode: PoolMode
  /** For connecting, and by default for a statement. */
  readonly timeoutMs: number
  readonly statementTimeoutMs?: number
}

/** Returns the MessagePorts that `postMessage` must transfer. */
export function transferListOf(shared: SharedStorage): MessagePort[] {
  return shared.kind === 'file' ? [shared.single, shared.bulk] : []
}

export interface StoreCounts {
  readonly plants: number
  readonly tokens: number
}

export interface StoreReport extends StoreCounts {
  /** The full path of the file, or the name of a database as `storageName` returns it. */
  readonly store: string
  /** The size of the file. Absent for a database. */
  readonly bytes?: number
  readonly schemaVersion: number
}

/**
 * A store as of one moment, unaffected by later changes, until it is disposed of. `counts` and `plants` reject with
 * DomainError `store-unavailable`.
 */
export interface StoreReader extends AsyncDisposable {
  readonly schemaVersion: number
  readonly tokens: Pick<TokenRepository, 'list'>
  readonly webhooks: Pick<WebhookRepository, 'list'>
  readonly outbox: Pick<Outbox, 'figures' | 'deliveriesOf'>
  /** Takes seconds for millions of plants. */
  counts(): Promise<StoreCounts>
  /** Yields all plants in ascending numeric order of id, a few at a time, in constant memory. */
  plants(): AsyncIterable<readonly Plant[]>
}

/** The readable part of a damaged store, closed to other processes. */
export interface Salvage extends AsyncDisposable {
  /** The number of plants in the index of tags, or `undefined` if it is damaged too. */
  readonly count: number | undefined
  /** Yields every plant that can be read, in order of id. */
  plants(): AsyncIterable<readonly Plant[]>
  /** Returns how many plants `plants()` could not read so far, or `undefined` if that is unknown. */
  unread(): number | undefined
}

export interface BackupReport extends StoreReport {
  /** Why the time of the backup could not be recorded beside the store, if so. */
  readonly unrecorded?: string
}

export interface RestoreReport extends StoreReport {
  /** Whether there was no store to replace. */
  readonly isNew: boolean
  /** The names of tokens that the replaced store did not have, or `undefined` if they cannot be read. */
  readonly revokedTokens: readonly string[] | undefined
  /** The names of tokens that only the replaced store had, or `undefined` if they cannot be read. */
  readonly lostTokens: readonly string[] | undefined
}

export interface CopyOptions {
  /** Replaces an existing target. */
  readonly force?: boolean
  readonly onProgress?: (done: { readonly pages: number; readonly ofPages: number }) => void
  /** Stops the copy and removes what it has written. */
  readonly signal?: AbortSignal
}

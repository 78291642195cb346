import type { MessagePort } from 'node:worker_threads'
import type { TokenRepository } from '@plant-store/access'
import { DomainError, type Plant, type PlantRepository } from '@plant-store/domain'
import type { Outbox, WebhookRepository } from '@plant-store/webhooks'
import type { PlantArchive, PlantSnapshot } from './archive.ts'
import type { Commit, GroupCommitLimits } from './group-commit.ts'

// No types of the drivers here: the drivers come without types, and importers of this package would miss them.

/** What a database does for this package. */
export interface Engine {
  open(options: EngineOptions): Promise<Storage>
  archive(): Promise<PlantArchive & AsyncDisposable>
  snapshot(): Promise<StoreSnapshot>
  inspect(): Promise<Omit<StoreReport, 'store'>>
}

export interface EngineOptions extends StorageObserver {
  readonly limits: GroupCommitLimits
  readonly timeoutMs: number
  readonly readConnectionsMax: number
}

export interface StorageObserver {
  /** Called once for every commit: for one that several threads share, in one of them. */
  readonly onCommit?: ((commit: Commit) => void) | undefined
  /** Called when a store begins to fail, when the reason changes, and when it works again. It works at first. */
  readonly onStateChange?: ((state: StoreState) => void) | undefined
}

export type StoreState = { readonly ready: true } | { readonly ready: false; readonly reason: string }

/** An open store. Disposing of it writes what still waits, and closes it. */
export interface Storage extends AsyncDisposable {
  readonly plants: PlantRepository
  readonly tokens: TokenRepository
  readonly webhooks: WebhookRepository
  readonly outbox: Outbox
  /** @throws DomainError `store-unavailable` when it cannot be read or written at the moment */
  check(): Promise<void>
  /** Returns how many changes have no outcome yet. */
  pending(): number
  /** Shares the storage with another thread, which attaches to it. Missing for a store in memory. */
  readonly share?: () => SharedStorage
}

/** Plain data and ports, which `postMessage` takes to another thread with {@link transferListOf} it. */
export type SharedStorage = SharedSqlite | SharedPostgres

export interface SharedSqlite {
  readonly kind: 'file'
  readonly file: string
  readonly writer: MessagePort
  readonly bulkWriter: MessagePort
  readonly limits: GroupCommitLimits
}

export interface SharedPostgres {
  readonly kind: 'postgres'
  readonly server: ServerOptions
  /** Connections for reading, of each thread. */
  readonly readConnectionsMax: number
  readonly limits: GroupCommitLimits
}

export interface ServerOptions {
  /** A URL for each host of the database. Only the one that takes writes is used. */
  readonly hosts: readonly string[]
  /** For connecting, and for a statement unless `statementTimeoutMs` says otherwise. */
  readonly timeoutMs: number
  readonly statementTimeoutMs?: number
}

/** Returns what `postMessage` must transfer with a shared storage. */
export function transferListOf(shared: SharedStorage): MessagePort[] {
  switch (shared.kind) {
    case 'file':
      return [shared.writer, shared.bulkWriter]
    case 'postgres':
      return []
  }
}

export interface StoreReport {
  /** Its file, or the name of a database as `storageName` gives it. */
  readonly store: string
  /** Of the file; missing for a database. */
  readonly bytes?: number
  readonly schemaVersion: number
  readonly plants: number
  readonly tokens: number
}

export interface StoreSnapshot extends PlantSnapshot {
  /** How many access tokens the store holds. They are not in the snapshot. */
  readonly tokens: number
}

/** A damaged store, as far as it can be read. No other process can use it meanwhile. */
export interface Salvage extends AsyncDisposable {
  /** How many plants the index of tags names; `undefined` when it is damaged too. */
  readonly count: number | undefined
  /** Every plant whose pages are sound, in the order of the ids. */
  plants(): AsyncIterable<readonly Plant[]>
  /** Returns what `plants()` could not read so far: pages, and plants in sound pages whose texts go on in damaged ones. */
  unreadable(): { readonly pages: number; readonly plants: number }
}

export interface RestoreReport extends StoreReport {
  /** The names of its tokens that the replaced store did not have; missing when they cannot be read. */
  readonly revokedTokens: readonly string[] | undefined
}

export interface CopyOptions {
  /** Replaces an existing target. */
  readonly force?: boolean
  readonly onProgress?: (done: { readonly pages: number; readonly ofPages: number }) => void
  /** Stops the copy and removes what it has written. */
  readonly signal?: AbortSignal
}

/** Another process has the store open. */
export class StoreInUseError extends Error {
  override readonly name = 'StoreInUseError'
}

/** A file of a store is damaged. */
export class StoreDamagedError extends Error {
  override readonly name = 'StoreDamagedError'
}

/** The connection ended before the server said whether plants were kept: all of them were, or none. */
export class OutcomeUnknownError extends DomainError {
  constructor(cause: Error) {
    super('store-unavailable', `the store did not say whether it kept the plants: ${cause.message}`, {
      cause,
    })
  }
}

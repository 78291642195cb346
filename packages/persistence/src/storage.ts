import type { TokenRepository } from '@plant-store/access'
import { DomainError, type PlantRepository } from '@plant-store/domain'
import type { PlantSnapshot } from './archive.ts'
import type { Commit } from './commit-queue.ts'
import type { StorageLink } from './storage-link.ts'

// What every database's adapter gives to those who open a store.

/** A store that is open. Disposing of it writes what still waits, and closes it. */
export interface Storage extends AsyncDisposable {
  readonly plants: PlantRepository
  readonly tokens: TokenRepository
  /** @throws DomainError `store-unavailable` when it can't be read or written at the moment */
  check(): Promise<void>
  /** How many changes have no outcome yet. */
  waiting(): number
  /** A way for another thread to use the same store; missing where the store can't be shared (one in memory). */
  readonly link?: () => StorageLink
}

/** Is told of every commit, once: a commit that several threads share, in one of them. */
export interface CommitObserver {
  readonly onCommit?: ((commit: Commit) => void) | undefined
}

/** Whether a store can be used at the moment. */
export type StoreState = { readonly ready: true } | { readonly ready: false; readonly reason: string }

/** Is told when a store begins to fail, when that has another reason, and when it works again; it works at first. */
export interface StateObserver {
  readonly onStateChange?: ((state: StoreState) => void) | undefined
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
  /** How many access tokens the store holds, which are not in the snapshot. */
  readonly tokens: number
}

export interface RestoreReport extends StoreReport {
  /** The names of tokens that are in it and were not in the store that it replaced; missing when that can't be read. */
  readonly revokedTokens: readonly string[] | undefined
}

export interface CopyOptions {
  /** Replaces what is there. */
  readonly force?: boolean
  readonly onProgress?: (done: { readonly pages: number; readonly ofPages: number }) => void
  /** Gives the copy up; nothing of it is left then. */
  readonly signal?: AbortSignal
}

/** Some process has the store open. */
export class StoreInUseError extends Error {
  override readonly name = 'StoreInUseError'
}

/** The connection ended while it was answered whether plants were kept: all of them were, or none, and nobody can tell. */
export class OutcomeUnknownError extends DomainError {
  constructor(cause: Error) {
    super('store-unavailable', `the store did not say whether it kept the plants: ${cause.message}`, {
      cause,
    })
  }
}

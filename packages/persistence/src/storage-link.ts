import type { MessagePort } from 'node:worker_threads'
import type { CommitQueueLimits } from './commit-queue.ts'
import type { PostgresOptions } from './postgres/options.ts'
import type { Statements } from './statements.ts'

// Apart from the databases' own files: their drivers come without types, and whoever imports this package would miss them.

/** Goes to another thread by `postMessage`, with `portsOf` it in the transfer list. */
export type StorageLink = SqliteLink | PostgresLink

/** What another thread needs to use the store too. */
export interface SqliteLink {
  readonly file: string
  readonly statements: Statements
  readonly writer: MessagePort
  readonly limits: CommitQueueLimits
}

/** What another thread needs to use the store too: over there, as many connections again. */
export interface PostgresLink {
  readonly options: PostgresOptions
  readonly statements: Statements
  readonly limits: CommitQueueLimits
}

import type { MessagePort } from 'node:worker_threads'
import type { Entities, ItemOf, Ports } from './compile-entities.ts'
import type { StoreError } from './errors.ts'
import type { PoolMode } from './store-url.ts'

// Nothing here is a type of a driver, because importers of this package do not have them.

/** The entities of a program's stores, and how errors become those of its ports. */
export interface StoreContent {
  readonly entities: Entities
  readonly translateError: (error: StoreError) => Error
}

export interface StorageOptions extends EngineOptions {
  /** A URL that `parseStoreUrl` takes. */
  readonly url: string
}

export interface EngineOptions extends StorageObserver {
  /**
   * Whether a store of an earlier version is migrated. Otherwise it is refused, because a
   * server of the earlier release may have it open. A new store is created either way.
   */
  readonly migrates?: boolean
  /**
   * How many single changes of each thread may be pending, by default 10,000. Above it,
   * `store-busy`.
   */
  readonly queueChangesMax?: number
  /**
   * PostgreSQL: after this time, by default 5 s, any operation is `store-unavailable`.
   */
  readonly timeoutMs?: number
  /**
   * SQLite: how long an opening or a change waits for the lock of another process, or for
   * a full WAL that another program reads, by default 5 s. Then it fails.
   */
  readonly lockTimeoutMs?: number
  /**
   * SQLite: how long the WAL may become while another program reads an old state, in
   * bytes, by default 4 GiB.
   */
  readonly walBytesMax?: number
  /**
   * PostgreSQL: connections of each thread for reading, by default 4. Changes use one
   * more.
   */
  readonly readConnectionsMax?: number
}

export interface Commit {
  /** The changes in this commit. */
  readonly changes: number
  /** The time from the start of the transaction until it is durable. */
  readonly ms: number
}

export interface StorageObserver {
  /** Called once for every commit. If threads share it, only one of them calls. */
  readonly onCommit?: (commit: Commit) => void
  /**
   * Called with the reason when a store begins to fail or fails for another one, and
   * without when it works again.
   */
  readonly onFailureChange?: (reason?: string) => void
  /**
   * SQLite: called with the reason when the WAL cannot be copied to the database, and
   * without when it can again. Changes succeed until the WAL is full. If threads share
   * it, only one of them calls.
   */
  readonly onCheckpointFailure?: (reason?: string) => void
  /**
   * Called with its schema version once a newer release has migrated the open store. If
   * threads share it, only the one that opened it calls.
   */
  readonly onNewerVersion?: (version: number) => void
  /** PostgreSQL: called with a warning of the server, each kind at most once a minute. */
  readonly onServerWarning?: (warning: string) => void
}

/**
 * An open store, with the port of each entity. Disposal writes pending changes and closes
 * it.
 */
export type Storage<Entered extends Entities = Entities> = Ports<Entered> &
  AsyncDisposable & {
    /** @throws `store-unavailable` if it cannot be read or written */
    check(): Promise<void>
    /** Returns the number of pending changes. */
    pending(): number
  }

/** The storage of the thread that opened the store. */
export type MainStorage<Entered extends Entities = Entities> = Storage<Entered> & {
  /**
   * The schema version before it was opened, or `undefined` if opening it created the
   * store.
   */
  readonly versionBefore: number | undefined
  /** The schema version that it has now. */
  readonly schemaVersion: number
  /** Shares the storage with another thread, which attaches to it. */
  share(): StorageHandle
}

/**
 * Plain data and MessagePorts with which another thread attaches itself. `postMessage`
 * takes it with {@link transferListOf}.
 */
export type StorageHandle = SqliteHandle | PostgresHandle

export interface SqliteHandle {
  readonly kind: 'file'
  readonly file: string
  /** Leads to the writer, for single changes. `bulkPort` does the same for bulk ones. */
  readonly singlePort: MessagePort
  readonly bulkPort: MessagePort
  readonly queueChangesMax: number | undefined
}

export interface PostgresHandle {
  readonly kind: 'postgres'
  readonly server: PostgresOptions
  /** The number of connections for reading in each thread. */
  readonly readConnectionsMax: number
  readonly queueChangesMax: number | undefined
}

export interface PostgresOptions {
  /** A URL for each host. Only the writable one is used. */
  readonly hosts: readonly string[]
  /** Whether a host that only reads will do if none is writable. */
  readonly mayBeReadOnly?: boolean
  /** The mode of a connection pooler in front of the server. `session` without one. */
  readonly poolMode: PoolMode
  /** How long connecting may take, and by default a statement. */
  readonly timeoutMs: number
  readonly statementTimeoutMs?: number
  /** The schema that has the store. Absent while the store is looked for. */
  readonly schema?: string
}

/** Returns the MessagePorts that `postMessage` must transfer. */
export function transferListOf(shared: StorageHandle): MessagePort[] {
  return shared.kind === 'file' ? [shared.singlePort, shared.bulkPort] : []
}

/** Says what opening a store would do. */
export interface OpeningPlan {
  /**
   * The full path of the file, or the name of a database with the schema of the store.
   */
  readonly store: string
  /**
   * The schema version of the store, or `undefined` if opening would create a new one.
   */
  readonly versionBefore: number | undefined
  /** The schema version that it would have then. */
  readonly schemaVersion: number
}

export interface StoreReport<Entered extends Entities = Entities> {
  /** The full path of the file, or the name of a database as `storageName` returns it. */
  readonly store: string
  /** The size of the file with its WAL. Absent for a database. */
  readonly bytes?: number
  readonly schemaVersion: number
  /** The rows of each entity. */
  readonly counts: { readonly [Name in keyof Entered]: number }
}

/**
 * A store as of one moment, unaffected by later changes, until it is disposed of.
 * `counts` and `all` reject with `store-unavailable`.
 */
export type StoreReader<Entered extends Entities = Entities> = Ports<Entered> &
  AsyncDisposable & {
    readonly schemaVersion: number
    /** Takes seconds for millions of rows. */
    counts(): Promise<StoreReport<Entered>['counts']>
    /**
     * Yields all items of an entity in ascending order of id, a few at a time, in
     * constant memory.
     */
    all<Name extends keyof Entered & string>(
      name: Name,
    ): AsyncIterable<readonly ItemOf<Entered[Name]>[]>
  }

import { type Stats, statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Entities } from './entity.ts'
import { fileReason, NoStoreError, type StoreError } from './errors.ts'
import { schemaVersionOf } from './migrations.ts'
import { createReader, type ReadTransaction } from './reader.ts'
import type {
  BackupReport,
  CopyOptions,
  EngineOptions,
  MainStorage,
  OpeningPlan,
  RestoreReport,
  Salvage,
  StorageHandle,
  StorageObserver,
  StorageOptions,
  StoreReader,
  StoreReport,
} from './storage.ts'
import {
  followLinks,
  parseStoreUrl,
  type StoreLocation,
  storageName,
} from './store-url.ts'

/** A store that is not open, on one kind of database. */
interface Store<Entered extends Entities> {
  open(options: EngineOptions): Promise<MainStorage<Entered>>
  /** Changes nothing. @throws Error like `open`, for every reason that can be foreseen */
  plan(): Promise<{
    readonly versionBefore: number | undefined
    readonly schema?: string
    /** Schemas outside the search path that have a store, if this one would be created. */
    readonly otherSchemas?: readonly string[]
  }>
  /** Begins to read a store of any known version, which it keeps. @throws NoStoreError if it is empty */
  read(): Promise<ReadTransaction<Entered>>
  inspect(): Promise<Omit<StoreReport, 'store'>>
}

/** Names that every storage or reader has. */
type Reserved =
  | keyof MainStorage<Record<never, never>>
  | keyof StoreReader<Record<never, never>>

/**
 * Returns what can be done with stores of these entities.
 *
 * @param translateError makes errors of stores those of the entities' ports. By default they are StoreError
 */
export function createStores<Entered extends Entities>(
  entities: Entered & { readonly [Name in Reserved]?: never },
  translateError: (error: StoreError) => Error = error => error,
) {
  // An older Node ends with a segmentation fault in the writer thread.
  const { node } = process.versions
  if (Number.parseInt(node, 10) < 24) {
    throw new Error(
      `@plant-store/engine needs Node 24 or later, and this is Node ${node}`,
    )
  }
  /** Imports only this database and its driver. */
  const storeAt = async (location: StoreLocation): Promise<Store<Entered>> => {
    switch (location.kind) {
      case 'file':
        return (await import('./sqlite/database.ts')).sqliteStore<Entered>(
          followLinks(location.file),
          entities,
        )
      case 'postgres':
        return (await import('./postgres/database.ts')).postgresStore<Entered>(
          location,
          entities,
        )
    }
  }

  /** @throws Error that names the store if it cannot be opened */
  const withStore = async <Opened>(
    url: string,
    open: (store: Store<Entered>) => Promise<Opened>,
  ): Promise<Opened> =>
    storeAt(parseStoreUrl(url))
      .then(open)
      .catch(cause => {
        const message = `the store ${storageName(url)} cannot be opened: ${cause.message}`
        throw cause instanceof NoStoreError
          ? new NoStoreError(message)
          : new Error(message, { cause })
      })

  const withExistingStore: typeof withStore = async (url, open) => {
    const location = parseStoreUrl(url)
    if (location.kind === 'file') {
      existing(location.file)
    }
    return withStore(url, open)
  }

  return {
    /**
     * Opens a store, and creates or migrates it if needed.
     *
     * @throws Error in one line if the store is unavailable; it is then unchanged
     */
    openStorage: ({ url, ...options }: StorageOptions) =>
      withStore(url, store => store.open({ translateError, ...options })),
    /**
     * Resolves to what `openStorage` would do, and changes nothing.
     *
     * @throws Error like `openStorage`, for every reason that can be foreseen
     */
    async planOpening(url: string): Promise<OpeningPlan> {
      const location = parseStoreUrl(url)
      if (location.kind === 'file') {
        fileExists(location.file)
      }
      return withStore(url, async store => {
        const { versionBefore, schema, otherSchemas = [] } = await store.plan()
        const place = schema === undefined ? '' : ` in the schema ${schema}`
        const others =
          otherSchemas.length === 0
            ? ''
            : `, although the schema ${otherSchemas.join(', ')} has one`
        return {
          store: `${storageName(url)}${place}${others}`,
          versionBefore,
          schemaVersion: schemaVersionOf(entities),
        }
      })
    },
    /** Attaches this thread to a storage of another thread. Disposal leaves the storage open there. */
    async attachStorage(shared: StorageHandle, given: StorageObserver = {}) {
      const observer = { translateError, ...given }
      switch (shared.kind) {
        case 'file':
          return (await import('./sqlite/database.ts')).attachSqlite<Entered>(
            shared,
            entities,
            observer,
          )
        case 'postgres':
          return (await import('./postgres/attach.ts')).attachPostgres<Entered>(
            shared,
            entities,
            observer,
          )
      }
    },
    /** Opens a store to read what it has as of now. Changes nothing. @throws NoStoreError, or Error if it is unreadable */
    openReader: (url: string) =>
      withExistingStore(url, async store =>
        createReader(entities, await store.read(), translateError),
      ),
    // The next four return names of entities, which are strings to the engine.
    /** Opens a damaged file to read everything that is still readable. Changes nothing. @throws Error if nothing is readable */
    async openSalvage(url: string) {
      const file = existing(fileOf(url))
      const { openSqliteSalvage } = await import('./sqlite/salvage.ts')
      return openSqliteSalvage(file, entities) as Salvage<Entered>
    },
    /**
     * Checks a store or a backup: every page of a file, or the row counts of a database. Rejects if it does not exist, is
     * damaged, or a newer release wrote it.
     */
    inspectStore: (url: string) =>
      withExistingStore(url, async store => {
        const report = { store: storageName(url), ...(await store.inspect()) }
        return report as StoreReport<Entered>
      }),
    /**
     * Copies a store as of now, while others change it. The copy is checked and durable.
     *
     * @throws StoreInUseError if the target is a store in use, or Error; the target is then unchanged
     */
    async backUpStore(url: string, target: string, options: CopyOptions = {}) {
      const file = existing(fileOf(url))
      const { backUpSqlite } = await import('./sqlite/backup.ts')
      return (await backUpSqlite(
        entities,
        file,
        target,
        options,
      )) as BackupReport<Entered>
    },
    /**
     * Replaces a store, which may not exist, with a backup in one step, after checking the backup.
     *
     * @throws StoreInUseError or Error; the store is then unchanged
     */
    async restoreStore(url: string, backup: string, options: CopyOptions = {}) {
      const { restoreSqlite } = await import('./sqlite/backup.ts')
      return (await restoreSqlite(
        entities,
        fileOf(url),
        backup,
        options,
      )) as RestoreReport<Entered>
    },
  }
}

function fileOf(url: string): string {
  const location = parseStoreUrl(url)
  if (location.kind === 'file') {
    return followLinks(location.file)
  }
  throw new Error(
    `${storageName(url)} is not a file: use pg_dump to back it up, and pg_restore`,
  )
}

/** @throws NoStoreError, or Error like {@link fileExists} */
function existing(file: string): string {
  if (!fileExists(file)) {
    throw new NoStoreError(`there is no store at ${resolve(file)}`)
  }
  return file
}

/** @throws Error if it is not a file, or if the system does not say, such as for want of permission */
function fileExists(file: string): boolean {
  let stat: Stats | undefined
  try {
    stat = statSync(file, { throwIfNoEntry: false })
  } catch (cause) {
    throw new Error(`the store ${resolve(file)} cannot be opened: ${fileReason(cause)}`, {
      cause,
    })
  }
  if (stat === undefined) {
    return false
  }
  if (stat.isDirectory()) {
    throw new Error(`${resolve(file)} is a folder`)
  }
  if (!stat.isFile()) {
    throw new Error(`${resolve(file)} is not a file`)
  }
  return true
}

import { resolve } from 'node:path'
import type { Entities } from './compile-entities.ts'
import { codeOf, messageOf, NoStoreError, reasonOf, type StoreError } from './errors.ts'
import { schemaVersionOf } from './migrations.ts'
import { createReader } from './snapshot.ts'
import type { BackupReport, CopyOptions, RestoreReport } from './sqlite/backup.ts'
import type { Salvage } from './sqlite/salvage.ts'
import { isFile } from './sqlite/store-path.ts'
import { followLinks, parseStoreUrl, storageName } from './store-url.ts'
import type {
  MainStorage,
  OpeningPlan,
  Storage,
  StorageHandle,
  StorageObserver,
  StorageOptions,
  StoreContent,
  StoreReader,
  StoreReport,
} from './types.ts'

/** Names that every storage or reader has, so that no entity may have them. */
type ReservedName =
  | keyof MainStorage<Record<never, never>>
  | keyof StoreReader<Record<never, never>>

/**
 * Returns what can be done with stores of these entities.
 *
 * The other files see a list of entities. A storage has those of its content, and so the
 * functions below may give it their types.
 *
 * @param translateError makes errors of a store those of the ports
 */
export function storesOf<Entered extends Entities>(
  entities: Entered & { readonly [Name in ReservedName]?: never },
  translateError: (error: StoreError) => Error = error => error,
) {
  const content = { entities, translateError }
  return { ...storagesOf<Entered>(content), ...backupsOf<Entered>(content) }
}

/** Returns what servers do, and what both databases can. */
function storagesOf<Entered extends Entities>(content: StoreContent) {
  return {
    /**
     * Opens a store, and creates it if needed. Migrates it only with the option
     * `migrates`.
     *
     * @throws Error in one line if the store is unavailable; it is then unchanged
     */
    async openStorage({ url, ...options }: StorageOptions) {
      const storage = await withStore(content, url, store => store.open(options))
      return storage as MainStorage<Entered>
    },

    /**
     * Resolves to what `openStorage` would do if it migrates, and changes nothing.
     *
     * @throws Error like `openStorage`, for every reason that can be foreseen
     */
    async planOpening(url: string): Promise<OpeningPlan> {
      const plan = await withStore(content, url, store => store.plan())
      return {
        store: nameInPlan(url, plan),
        versionBefore: plan.versionBefore,
        schemaVersion: schemaVersionOf(content.entities),
      }
    },

    /**
     * Attaches this thread to a storage of another thread. Disposal leaves the storage
     * open there.
     */
    async attachStorage(shared: StorageHandle, observer: StorageObserver = {}) {
      if (shared.kind === 'file') {
        const { attachSqlite } = await import('./sqlite/driver.ts')
        return attachSqlite(shared, content, observer) as Storage<Entered>
      }
      const { attachPostgres } = await import('./postgres/driver.ts')
      return attachPostgres(shared, content, observer) as Storage<Entered>
    },

    /**
     * Opens a store to read what it has as of now. Changes nothing.
     *
     * @throws NoStoreError, or Error if it is unreadable
     */
    async openReader(url: string) {
      requireStore(url)
      const reading = await withStore(content, url, store => store.read())
      return createReader(content, reading) as StoreReader<Entered>
    },

    /**
     * Checks a store or a backup: every page of a file, or the row counts of a database.
     *
     * @throws Error if it does not exist, is damaged, or a newer release wrote it
     */
    async inspectStore(url: string) {
      requireStore(url)
      const contents = await withStore(content, url, store => store.inspect())
      return { store: storageName(url), ...contents } as StoreReport<Entered>
    },
  }
}

/** Returns what operators do with files. */
function backupsOf<Entered extends Entities>({ entities }: StoreContent) {
  return {
    /**
     * Opens a damaged file to read everything that is still readable. Changes nothing.
     *
     * @throws Error if nothing is readable
     */
    async openSalvage(url: string) {
      const file = fileOf(url)
      requireStore(url)
      const { openSqliteSalvage } = await import('./sqlite/salvage.ts')
      return openSqliteSalvage(file, entities) as Salvage<Entered>
    },

    /**
     * Copies a store as of now, while others change it. The copy is checked and durable.
     *
     * @throws StoreInUseError if the target is a store in use, or Error; the target is
     *   then unchanged
     */
    async backUpStore(url: string, target: string, options: CopyOptions = {}) {
      const file = fileOf(url)
      requireStore(url)
      const { backUpSqlite } = await import('./sqlite/backup.ts')
      const report = await backUpSqlite(entities, file, target, options)
      return report as BackupReport<Entered>
    },

    /**
     * Replaces a store, which may not exist, with a backup in one step, after checking
     * the backup.
     *
     * @throws StoreInUseError or Error; the store is then unchanged, unless the message
     *   says that it was restored
     */
    async restoreStore(url: string, backup: string, options: CopyOptions = {}) {
      const file = fileOf(url)
      const { restoreSqlite } = await import('./sqlite/backup.ts')
      const report = await restoreSqlite(entities, file, backup, options)
      return report as RestoreReport<Entered>
    },
  }
}

/** A store that is not open, on one kind of database. */
type Store = Awaited<ReturnType<typeof storeAt>>

/** @throws Error that names the store if it cannot be opened */
async function withStore<Opened>(
  content: StoreContent,
  url: string,
  open: (store: Store) => Promise<Opened>,
): Promise<Opened> {
  try {
    return await open(await storeAt(url, content))
  } catch (cause) {
    const message = `the store ${storageName(url)} cannot be opened: ${messageOf(cause)}`
    throw cause instanceof NoStoreError
      ? new NoStoreError(message)
      : new Error(message, { cause })
  }
}

/**
 * Returns what can be done with a store: to open it, or to plan that, which changes
 * nothing, and to read or to inspect it in any known version, which it keeps. Imports
 * only this database and its driver.
 */
async function storeAt(url: string, content: StoreContent) {
  const location = parseStoreUrl(url)
  if (location.kind === 'file') {
    const { sqliteStore } = await import('./sqlite/store.ts')
    return sqliteStore(followLinks(location.file), content)
  }
  const { postgresStore } = await import('./postgres/store.ts')
  return postgresStore(location, content)
}

interface StorePlan {
  readonly versionBefore: number | undefined
  readonly schema?: string
  /** Schemas outside the search path that have a store, if this one would be created. */
  readonly otherSchemas?: readonly string[]
}

function nameInPlan(url: string, { schema, otherSchemas = [] }: StorePlan) {
  let name = storageName(url)
  if (schema !== undefined) {
    name += ` in the schema ${schema}`
  }
  if (otherSchemas.length > 0) {
    name += `, although the schema ${otherSchemas.join(', ')} has one`
  }
  return name
}

function fileOf(url: string) {
  const location = parseStoreUrl(url)
  if (location.kind === 'file') {
    return followLinks(resolve(location.file))
  }
  throw new Error(
    `${storageName(url)} is not a file: use pg_dump to back it up, and pg_restore`,
  )
}

/**
 * Requires that there may be a store. A server is asked later.
 *
 * @throws NoStoreError, or Error if it is not a file, or if the system does not say, such
 *   as for want of permission
 */
function requireStore(url: string) {
  const location = parseStoreUrl(url)
  if (location.kind === 'postgres') {
    return
  }
  const file = resolve(location.file)
  try {
    if (isFile(file)) {
      return
    }
  } catch (cause) {
    if (codeOf(cause) === '') {
      throw cause
    }
    throw new Error(`the store ${file} cannot be opened: ${reasonOf(cause)}`, { cause })
  }
  throw new NoStoreError(`there is no store at ${file}`)
}

import { type Stats, statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Entities } from './entity.ts'
import { fileReason, NoStoreError } from './errors.ts'
import { schemaVersionOf } from './migrations.ts'
import { createReader, type ReadTransaction } from './snapshot.ts'
import {
  followLinks,
  parseStoreUrl,
  type StoreLocation,
  storageName,
} from './store-url.ts'
import type {
  BackupReport,
  CopyOptions,
  EngineOptions,
  MainStorage,
  OpeningPlan,
  RestoreReport,
  Salvage,
  Storage,
  StorageHandle,
  StorageObserver,
  StorageOptions,
  StoreContent,
  StoreReader,
  StoreReport,
} from './types.ts'

// The other files see a list of entities. A storage has those of its content, and so the
// functions below may give it their types.

/**
 * Opens a store, and creates it if needed. Migrates it only with the option `migrates`.
 *
 * @throws Error in one line if the store is unavailable; it is then unchanged
 */
export async function openStorage<Entered extends Entities>(
  content: StoreContent<Entered>,
  { url, ...options }: StorageOptions,
): Promise<MainStorage<Entered>> {
  const storage = await withStore(content, url, store => store.open(options))
  return storage as MainStorage<Entered>
}

/**
 * Resolves to what `openStorage` would do if it migrates, and changes nothing.
 *
 * @throws Error like `openStorage`, for every reason that can be foreseen
 */
export async function planOpening(
  content: StoreContent,
  url: string,
): Promise<OpeningPlan> {
  const location = parseStoreUrl(url)
  if (location.kind === 'file') {
    // Throws if it is no file.
    fileExists(location.file)
  }
  return withStore(content, url, async store => {
    const plan = await store.plan()
    return {
      store: nameInPlan(url, plan),
      versionBefore: plan.versionBefore,
      schemaVersion: schemaVersionOf(content.entities),
    }
  })
}

/**
 * Attaches this thread to a storage of another thread. Disposal leaves the storage open
 * there.
 */
export async function attachStorage<Entered extends Entities>(
  content: StoreContent<Entered>,
  shared: StorageHandle,
  observer: StorageObserver = {},
): Promise<Storage<Entered>> {
  const storage = await attach(content, shared, observer)
  return storage as Storage<Entered>
}

async function attach(
  content: StoreContent,
  shared: StorageHandle,
  observer: StorageObserver,
): Promise<Storage> {
  if (shared.kind === 'file') {
    const { attachSqlite } = await import('./sqlite/database.ts')
    return attachSqlite(shared, content, observer)
  }
  const { attachPostgres } = await import('./postgres/attach.ts')
  return attachPostgres(shared, content, observer)
}

/**
 * Opens a store to read what it has as of now. Changes nothing.
 *
 * @throws NoStoreError, or Error if it is unreadable
 */
export async function openReader<Entered extends Entities>(
  content: StoreContent<Entered>,
  url: string,
): Promise<StoreReader<Entered>> {
  const reading = await withExistingStore(content, url, store => store.read())
  return createReader(content, reading) as StoreReader<Entered>
}

/**
 * Opens a damaged file to read everything that is still readable. Changes nothing.
 *
 * @throws Error if nothing is readable
 */
export async function openSalvage<Entered extends Entities>(
  { entities }: StoreContent<Entered>,
  url: string,
): Promise<Salvage<Entered>> {
  const file = existing(fileOf(url))
  const { openSqliteSalvage } = await import('./sqlite/salvage.ts')
  return openSqliteSalvage(file, entities) as Salvage<Entered>
}

/**
 * Checks a store or a backup: every page of a file, or the row counts of a database.
 *
 * @throws Error if it does not exist, is damaged, or a newer release wrote it
 */
export async function inspectStore<Entered extends Entities>(
  content: StoreContent<Entered>,
  url: string,
): Promise<StoreReport<Entered>> {
  const contents = await withExistingStore(content, url, store => store.inspect())
  return { store: storageName(url), ...contents } as StoreReport<Entered>
}

/**
 * Copies a store as of now, while others change it. The copy is checked and durable.
 *
 * @throws StoreInUseError if the target is a store in use, or Error; the target is then
 *   unchanged
 */
export async function backUpStore<Entered extends Entities>(
  { entities }: StoreContent<Entered>,
  url: string,
  target: string,
  options: CopyOptions = {},
): Promise<BackupReport<Entered>> {
  const file = existing(fileOf(url))
  const { backUpSqlite } = await import('./sqlite/backup.ts')
  const report = await backUpSqlite(entities, file, target, options)
  return report as BackupReport<Entered>
}

/**
 * Replaces a store, which may not exist, with a backup in one step, after checking the
 * backup.
 *
 * @throws StoreInUseError or Error; the store is then unchanged, unless the message says
 *   that it was restored
 */
export async function restoreStore<Entered extends Entities>(
  { entities }: StoreContent<Entered>,
  url: string,
  backup: string,
  options: CopyOptions = {},
): Promise<RestoreReport<Entered>> {
  const file = fileOf(url)
  const { restoreSqlite } = await import('./sqlite/backup.ts')
  const report = await restoreSqlite(entities, file, backup, options)
  return report as RestoreReport<Entered>
}

/** A store that is not open, on one kind of database. */
interface Store {
  open(options: EngineOptions): Promise<MainStorage>
  /**
   * Changes nothing.
   *
   * @throws Error like `open`, for every reason that can be foreseen
   */
  plan(): Promise<StorePlan>
  /**
   * Begins to read a store of any known version, which it keeps.
   *
   * @throws NoStoreError if it is empty
   */
  read(): Promise<ReadTransaction>
  inspect(): Promise<Omit<StoreReport, 'store'>>
}

interface StorePlan {
  readonly versionBefore: number | undefined
  readonly schema?: string
  /** Schemas outside the search path that have a store, if this one would be created. */
  readonly otherSchemas?: readonly string[]
}

/** Imports only this database and its driver. */
async function storeAt(location: StoreLocation, content: StoreContent): Promise<Store> {
  refuseOldNode()
  if (location.kind === 'file') {
    const { sqliteStore } = await import('./sqlite/database.ts')
    return sqliteStore(followLinks(location.file), content)
  }
  const { postgresStore } = await import('./postgres/database.ts')
  return postgresStore(location, content)
}

/** An older Node ends with a segmentation fault in the writer thread. */
function refuseOldNode(): void {
  const { node } = process.versions
  if (Number.parseInt(node, 10) < 24) {
    throw new Error(
      `@plant-store/engine needs Node 24 or later, and this is Node ${node}`,
    )
  }
}

/** @throws Error that names the store if it cannot be opened */
async function withStore<Opened>(
  content: StoreContent,
  url: string,
  open: (store: Store) => Promise<Opened>,
): Promise<Opened> {
  const location = parseStoreUrl(url)
  try {
    return await open(await storeAt(location, content))
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    const message = `the store ${storageName(url)} cannot be opened: ${reason}`
    throw cause instanceof NoStoreError
      ? new NoStoreError(message)
      : new Error(message, { cause })
  }
}

/** @throws NoStoreError if there is no file, or like {@link withStore} */
async function withExistingStore<Opened>(
  content: StoreContent,
  url: string,
  open: (store: Store) => Promise<Opened>,
): Promise<Opened> {
  const location = parseStoreUrl(url)
  if (location.kind === 'file') {
    existing(location.file)
  }
  return withStore(content, url, open)
}

function nameInPlan(url: string, { schema, otherSchemas = [] }: StorePlan): string {
  let name = storageName(url)
  if (schema !== undefined) {
    name += ` in the schema ${schema}`
  }
  if (otherSchemas.length > 0) {
    name += `, although the schema ${otherSchemas.join(', ')} has one`
  }
  return name
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

/**
 * @throws Error if it is not a file, or if the system does not say, such as for want of
 *   permission
 */
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

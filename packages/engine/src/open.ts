import { type Stats, statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Entities } from './entity.ts'
import { fileReason, NoStoreError, type StoreError } from './errors.ts'
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
  StoreReader,
  StoreReport,
} from './types.ts'

/** The content of the stores of a program. */
export interface StoreContent<Entered extends Entities> {
  readonly entities: Entered & { readonly [Name in Reserved]?: never }
  /**
   * Makes errors of a store those of the ports. By default they are {@link StoreError}.
   */
  readonly translateError?: (error: StoreError) => Error
}

/** Names that every storage or reader has, so that no entity may have them. */
type Reserved =
  | keyof MainStorage<Record<never, never>>
  | keyof StoreReader<Record<never, never>>

/**
 * Opens a store, and creates or migrates it if needed.
 *
 * @throws Error in one line if the store is unavailable; it is then unchanged
 */
export async function openStorage<Entered extends Entities>(
  content: StoreContent<Entered>,
  { url, ...options }: StorageOptions,
): Promise<MainStorage<Entered>> {
  const { translateError } = content
  return withStore(content, url, store => store.open({ translateError, ...options }))
}

/**
 * Resolves to what `openStorage` would do, and changes nothing.
 *
 * @throws Error like `openStorage`, for every reason that can be foreseen
 */
export async function planOpening<Entered extends Entities>(
  content: StoreContent<Entered>,
  url: string,
): Promise<OpeningPlan> {
  const location = parseStoreUrl(url)
  if (location.kind === 'file') {
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
  { entities, translateError }: StoreContent<Entered>,
  shared: StorageHandle,
  observer: StorageObserver = {},
): Promise<Storage<Entered>> {
  const translating = { translateError, ...observer }
  if (shared.kind === 'file') {
    const { attachSqlite } = await import('./sqlite/database.ts')
    return attachSqlite<Entered>(shared, entities, translating)
  }
  const { attachPostgres } = await import('./postgres/attach.ts')
  return attachPostgres<Entered>(shared, entities, translating)
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
  const { entities, translateError = unchanged } = content
  return withExistingStore(content, url, async store =>
    createReader<Entered>(entities, await store.read(), translateError),
  )
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
  // It has the names of these entities, which are strings to it.
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
  return withExistingStore(content, url, async store => {
    const report = { store: storageName(url), ...(await store.inspect()) }
    // It counts these entities, whose names are strings to it.
    return report as StoreReport<Entered>
  })
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
  // It counts these entities, whose names are strings to it.
  return report as BackupReport<Entered>
}

/**
 * Replaces a store, which may not exist, with a backup in one step, after checking the
 * backup.
 *
 * @throws StoreInUseError or Error; the store is then unchanged
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
  // It counts these entities, whose names are strings to it.
  return report as RestoreReport<Entered>
}

/** A store that is not open, on one kind of database. */
interface Store<Entered extends Entities> {
  open(options: EngineOptions): Promise<MainStorage<Entered>>
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
  read(): Promise<ReadTransaction<Entered>>
  inspect(): Promise<Omit<StoreReport, 'store'>>
}

interface StorePlan {
  readonly versionBefore: number | undefined
  readonly schema?: string
  /** Schemas outside the search path that have a store, if this one would be created. */
  readonly otherSchemas?: readonly string[]
}

/** Imports only this database and its driver. */
async function storeAt<Entered extends Entities>(
  location: StoreLocation,
  entities: Entered,
): Promise<Store<Entered>> {
  refuseOldNode()
  if (location.kind === 'file') {
    const { sqliteStore } = await import('./sqlite/database.ts')
    return sqliteStore<Entered>(followLinks(location.file), entities)
  }
  const { postgresStore } = await import('./postgres/database.ts')
  return postgresStore<Entered>(location, entities)
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
async function withStore<Entered extends Entities, Opened>(
  { entities }: StoreContent<Entered>,
  url: string,
  open: (store: Store<Entered>) => Promise<Opened>,
): Promise<Opened> {
  const location = parseStoreUrl(url)
  try {
    return await open(await storeAt<Entered>(location, entities))
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    const message = `the store ${storageName(url)} cannot be opened: ${reason}`
    throw cause instanceof NoStoreError
      ? new NoStoreError(message)
      : new Error(message, { cause })
  }
}

/** @throws NoStoreError if there is no file, or like {@link withStore} */
async function withExistingStore<Entered extends Entities, Opened>(
  content: StoreContent<Entered>,
  url: string,
  open: (store: Store<Entered>) => Promise<Opened>,
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

function unchanged(error: StoreError): StoreError {
  return error
}

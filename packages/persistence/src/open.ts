import { DomainError } from '@plant-store/domain'
import type { CopyOptions, StorageHandle, StorageObserver } from '@plant-store/engine'
import * as engine from '@plant-store/engine'
import { entities } from './entities.ts'

const content: engine.StoreContent<typeof entities> = {
  entities,
  translateError: ({ code, message, cause }) => new DomainError(code, message, { cause }),
}

/**
 * An open store: each entity implements its port. The ports reject with DomainError
 * `store-busy` or `store-unavailable`.
 */
export interface Storage extends engine.Storage<typeof entities> {}
export interface MainStorage extends engine.MainStorage<typeof entities> {}
export interface StoreReader extends engine.StoreReader<typeof entities> {}
export interface StoreReport extends engine.StoreReport<typeof entities> {}
export interface BackupReport extends engine.BackupReport<typeof entities> {}
export interface RestoreReport extends engine.RestoreReport<typeof entities> {}
export interface Salvage extends engine.Salvage<typeof entities> {}

/**
 * Opens a store, and creates it if needed. Migrates it only with the option `migrates`.
 *
 * @throws Error in one line if the store is unavailable; it is then unchanged
 */
export function openStorage(options: engine.StorageOptions): Promise<MainStorage> {
  return engine.openStorage(content, options)
}

/**
 * Resolves to what `openStorage` would do if it migrates, and changes nothing.
 *
 * @throws Error like `openStorage`, for every reason that can be foreseen
 */
export function planOpening(url: string): Promise<engine.OpeningPlan> {
  return engine.planOpening(content, url)
}

/**
 * Attaches this thread to a storage of another thread. Disposal leaves the storage open
 * there.
 */
export function attachStorage(
  shared: StorageHandle,
  observer?: StorageObserver,
): Promise<Storage> {
  return engine.attachStorage(content, shared, observer)
}

/**
 * Opens a store to read what it has as of now. Changes nothing.
 *
 * @throws NoStoreError, or Error if it is unreadable
 */
export function openReader(url: string): Promise<StoreReader> {
  return engine.openReader(content, url)
}

/**
 * Opens a damaged file to read everything that is still readable. Changes nothing.
 *
 * @throws Error if nothing is readable
 */
export function openSalvage(url: string): Promise<Salvage> {
  return engine.openSalvage(content, url)
}

/**
 * Checks a store or a backup: every page of a file, or the row counts of a database.
 *
 * @throws Error if it does not exist, is damaged, or a newer release wrote it
 */
export function inspectStore(url: string): Promise<StoreReport> {
  return engine.inspectStore(content, url)
}

/**
 * Copies a store as of now, while others change it. The copy is checked and durable.
 *
 * @throws StoreInUseError if the target is a store in use, or Error; the target is then
 *   unchanged
 */
export function backUpStore(
  url: string,
  target: string,
  options?: CopyOptions,
): Promise<BackupReport> {
  return engine.backUpStore(content, url, target, options)
}

/**
 * Replaces a store, which may not exist, with a backup in one step, after checking the
 * backup.
 *
 * @throws StoreInUseError or Error; the store is then unchanged
 */
export function restoreStore(
  url: string,
  backup: string,
  options?: CopyOptions,
): Promise<RestoreReport> {
  return engine.restoreStore(content, url, backup, options)
}

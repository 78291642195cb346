import { DomainError } from '@plant-store/domain'
import {
  type BackupReport as BackupReportOf,
  defineStore,
  type RestoreReport as RestoreReportOf,
  type Salvage as SalvageOf,
  type ShareableStorage as ShareableStorageOf,
  type Storage as StorageOf,
  type StoreReader as StoreReaderOf,
  type StoreReport as StoreReportOf,
} from '@plant-store/engine'
import { entities } from './entities.ts'

export {
  type Commit,
  type CopyOptions,
  defaultStoreUrl,
  explain,
  fileReason,
  followLinks,
  type GroupCommitLimits,
  isDamage,
  NoStoreError,
  parseStoreUrl,
  readLastBackup,
  replaceFile,
  type SharedStorage,
  type StorageObserver,
  type StorageOptions,
  StoreInUseError,
  type StoreLocation,
  storageName,
  storeFiles,
  transferListOf,
} from '@plant-store/engine'
export { entities } from './entities.ts'

type Entered = typeof entities
/** An open store: `plants`, `tokens` and `webhooks` implement the ports. */
export interface Storage extends StorageOf<Entered> {}
export interface ShareableStorage extends ShareableStorageOf<Entered> {}
export interface StoreReader extends StoreReaderOf<Entered> {}
export interface Salvage extends SalvageOf<Entered> {}
export interface StoreReport extends StoreReportOf<Entered> {}
export interface BackupReport extends BackupReportOf<Entered> {}
export interface RestoreReport extends RestoreReportOf<Entered> {}

/** See `StoreOf` of `@plant-store/engine`. The ports reject with DomainError `store-busy` or `store-unavailable`. */
export const {
  openStorage,
  attachStorage,
  openReader,
  openSalvage,
  inspectStore,
  backUpStore,
  restoreStore,
} = defineStore(entities, ({ code, message, cause }) => new DomainError(code, message, { cause }))

export { explain, fileReason, isDamage, NoStoreError, StoreInUseError } from './errors.ts'
export {
  attachStorage,
  backUpStore,
  inspectStore,
  openReader,
  openSalvage,
  openStorage,
  readLastBackup,
  replaceFile,
  restoreStore,
} from './open.ts'
export {
  type BackupReport,
  type Commit,
  type CopyOptions,
  type GroupCommitLimits,
  type RestoreReport,
  type Salvage,
  type ShareableStorage,
  type SharedStorage,
  type Storage,
  type StorageObserver,
  type StorageOptions,
  type StoreReader,
  type StoreReport,
  type StoreState,
  transferListOf,
} from './storage.ts'
export { defaultStoreUrl, parseStoreUrl, type StoreLocation, storageName, storeFiles } from './store-url.ts'

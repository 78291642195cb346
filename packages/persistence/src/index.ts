export { explain, fileReason, isDamage, NoStoreError, StoreInUseError } from './errors.ts'
export {
  attachStorage,
  backUpStore,
  inspectStore,
  openReader,
  openSalvage,
  openStorage,
  replaceFile,
  restoreStore,
} from './open.ts'
export {
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
export {
  defaultStoreUrl,
  followLinks,
  parseStoreUrl,
  type StoreLocation,
  storageName,
  storeFiles,
} from './store-url.ts'

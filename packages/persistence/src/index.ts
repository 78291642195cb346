export { fileReason } from './file-reason.ts'
export type { Commit, GroupCommitLimits } from './group-commit.ts'
export {
  attachStorage,
  backUpStore,
  inspectStore,
  openReader,
  openSalvage,
  openSnapshot,
  openStorage,
  restoreStore,
  type StorageOptions,
} from './open.ts'
export { explain, isDamage } from './outage.ts'
export { replaceFile } from './replace-file.ts'
export {
  type CopyOptions,
  type RestoreReport,
  type Salvage,
  type ShareableStorage,
  type SharedStorage,
  type Storage,
  type StorageObserver,
  StoreInUseError,
  type StoreReader,
  type StoreReport,
  type StoreSnapshot,
  type StoreState,
  transferListOf,
} from './storage.ts'
export { defaultStoreUrl, parseStoreUrl, type StoreLocation, storageName, storeFiles } from './store-url.ts'

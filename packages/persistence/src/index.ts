export type { Commit, GroupCommitLimits } from './commit/group-commit.ts'
export { explain, isDamage } from './commit/outage.ts'
export { fileReason } from './files/file-reason.ts'
export { replaceFile } from './files/replace-file.ts'
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

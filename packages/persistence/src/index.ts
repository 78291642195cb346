export type { LoadOutcome, OnTaken, PlantArchive, PlantSnapshot, StagedLoad } from './archive.ts'
export type { Commit, GroupCommitLimits } from './group-commit.ts'
export {
  attachStorage,
  backUpStore,
  inspectStore,
  openArchive,
  openSnapshot,
  openStorage,
  restoreStore,
  type StorageOptions,
} from './open.ts'
export { explain } from './outage.ts'
export { replaceFile } from './replace-file.ts'
export {
  type CopyOptions,
  OutcomeUnknownError,
  type RestoreReport,
  type SharedStorage,
  type Storage,
  type StorageObserver,
  StoreInUseError,
  type StoreReport,
  type StoreSnapshot,
  type StoreState,
  transferListOf,
} from './storage.ts'
export { defaultStoreUrl, parseStoreUrl, type StoreLocation, storageName, storeFiles } from './store-url.ts'

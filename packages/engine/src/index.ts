export { compileEntities, type Entity, type Migration } from './compile-entities.ts'
export {
  codeOf,
  isDamage,
  messageOf,
  NoStoreError,
  reasonOf,
  StoreError,
  StoreInUseError,
} from './errors.ts'
export { printable } from './printable.ts'
export type { Runner } from './runner.ts'
export type {
  BackupReport,
  CopyOptions,
  RestoredRows,
  RestoreReport,
} from './sqlite/backup.ts'
export { readLastBackup } from './sqlite/last-backup.ts'
export { replaceFile } from './sqlite/replace-file.ts'
export type { Salvage } from './sqlite/salvage.ts'
export { readStoreId } from './sqlite/store-id.ts'
export {
  type Dialect,
  type PageText,
  postgresDialect,
  sqliteDialect,
} from './statements/dialect.ts'
export type {
  Build,
  Change,
  ChangeStatement,
  ColumnsOf,
  PageBounds,
  Parameter,
  Query,
  ReadStatement,
} from './statements/statement.ts'
export {
  defaultStoreUrl,
  followLinks,
  parseStoreUrl,
  storageName,
  storeFiles,
} from './store-url.ts'
export { storesOf } from './stores.ts'
export {
  type Commit,
  type MainStorage,
  type OpeningPlan,
  type Storage,
  type StorageHandle,
  type StorageObserver,
  type StorageOptions,
  type StoreReader,
  type StoreReport,
  transferListOf,
} from './types.ts'

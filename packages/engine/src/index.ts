export { compileEntities, type Entity, type Migration, type Runner } from './entity.ts'
export {
  explain,
  fileReason,
  isDamage,
  NoStoreError,
  StoreError,
  StoreInUseError,
} from './errors.ts'
export {
  attachStorage,
  backUpStore,
  inspectStore,
  openReader,
  openSalvage,
  openStorage,
  planOpening,
  restoreStore,
} from './open.ts'
export { printable } from './printable.ts'
export { readLastBackup } from './sqlite/last-backup.ts'
export { replaceFile } from './sqlite/replace-file.ts'
export { readStoreId } from './sqlite/store-id.ts'
export {
  type Dialect,
  type PageText,
  type PrecedingStatement,
  postgresDialect,
  sqliteDialect,
} from './statements/dialect.ts'
export type {
  Change,
  ChangeStatement,
  ColumnType,
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
  type BackupReport,
  type Commit,
  type CopyOptions,
  type MainStorage,
  type OpeningPlan,
  type RestoreReport,
  type Salvage,
  type Storage,
  type StorageHandle,
  type StorageObserver,
  type StorageOptions,
  type StoreContent,
  type StoreReader,
  type StoreReport,
  transferListOf,
} from './types.ts'

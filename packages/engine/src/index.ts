export {
  compileEntities,
  type Entities,
  type Entity,
  type Migration,
  type Runner,
} from './entity.ts'
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
  type StoreContent,
} from './open.ts'
export { printable } from './printable.ts'
export { createStorage, type DatabaseDriver } from './runner.ts'
export { readLastBackup } from './sqlite/last-backup.ts'
export { replaceFile } from './sqlite/replace-file.ts'
export { readStoreId } from './sqlite/store-id.ts'
export {
  type Before,
  type Dialect,
  postgresDialect,
  sqliteDialect,
} from './statements/dialect.ts'
export { readRows } from './statements/read-rows.ts'
export {
  type Change,
  type ChangeStatement,
  type ColumnType,
  type PageBounds,
  type Parameter,
  type Query,
  type ReadStatement,
  type Statement,
  valuesOf,
} from './statements/statement.ts'
export {
  defaultStoreUrl,
  followLinks,
  parseStoreUrl,
  storageName,
  storeFiles,
} from './store-url.ts'
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
  type StoreReader,
  type StoreReport,
  transferListOf,
} from './types.ts'

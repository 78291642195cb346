// `@plant-store/persistence/engine`: what an engine for another database is made of.

export {
  type CreateStorageOptions,
  createStorage,
  rowsWithin,
  type StatementDatabase,
} from './create-storage.ts'
export { type Change, defaultGroupCommitLimits, type GroupCommitLimits } from './group-commit.ts'
export { bringUpToDate, type Dialect } from './migrations.ts'
export { createStatements, type Statements } from './shared-statements.ts'
export type { Storage, StorageObserver, StoreState } from './storage.ts'
export type { PlantRow, Tables } from './tables.ts'

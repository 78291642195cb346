// `@plant-store/persistence/engine`: what an engine for another database is made of.

export {
  type CreateStorageOptions,
  createStorage,
  rowsWithin,
  type StatementDatabase,
} from './create-storage.ts'
export { type Dialect, postgresDialect, sqliteDialect } from './dialect.ts'
export { defaultGroupCommitLimits, type GroupCommitLimits } from './group-commit.ts'
export { bringUpToDate } from './migrations.ts'
export { type Change, createStatements, type Statement, type Statements, type Value } from './statements.ts'
export type { Storage, StorageObserver, StoreState } from './storage.ts'
export type { PlantRow, Tables } from './tables.ts'

// `@plant-store/persistence/engine`: what an engine for another database is made of.

export {
  type CreateStorageOptions,
  createStorage,
  rowsWithin,
  type StatementDatabase,
} from './commit/create-storage.ts'
export { defaultGroupCommitLimits } from './commit/group-commit.ts'
export { type Change, createStatements, type Statements } from './repositories/repositories.ts'
export type { Statement, Value } from './repositories/statements.ts'
export { type Dialect, postgresDialect, sqliteDialect } from './schema/dialect.ts'
export { bringUpToDate } from './schema/migrations.ts'
export type { PlantRow, Tables } from './schema/tables.ts'
export type { GroupCommitLimits, Storage, StorageObserver, StoreState } from './storage.ts'

import { DomainError } from '@plant-store/domain'
import type * as engine from '@plant-store/engine'
import { createStores } from '@plant-store/engine'
import { entities } from './entities.ts'

export {
  type Commit,
  type CopyOptions,
  defaultStoreUrl,
  explain,
  fileReason,
  followLinks,
  isDamage,
  NoStoreError,
  type OpeningPlan,
  parseStoreUrl,
  printable,
  readLastBackup,
  readStoreId,
  replaceFile,
  type StorageHandle,
  type StorageOptions,
  StoreInUseError,
  storageName,
  storeFiles,
  transferListOf,
} from '@plant-store/engine'
export { entities } from './entities.ts'

type Entered = typeof entities
/** An open store: each entity implements its port. */
export interface Storage extends engine.Storage<Entered> {}
export interface MainStorage extends engine.MainStorage<Entered> {}
export interface StoreReader extends engine.StoreReader<Entered> {}
export interface StoreReport extends engine.StoreReport<Entered> {}

/** See `createStores` of `@plant-store/engine`. The ports reject with DomainError `store-busy` or `store-unavailable`. */
export const {
  openStorage,
  planOpening,
  attachStorage,
  openReader,
  openSalvage,
  inspectStore,
  backUpStore,
  restoreStore,
} = createStores(
  entities,
  ({ code, message, cause }) => new DomainError(code, message, { cause }),
)

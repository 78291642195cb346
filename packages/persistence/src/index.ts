import { DomainError } from '@plant-store/domain'
import type * as engine from '@plant-store/engine'
import { storesOf } from '@plant-store/engine'
import { entities } from './entities.ts'

export { entities }

/**
 * Opens, copies and repairs stores. An open one has the port of each entity, which
 * rejects with DomainError `store-busy` or `store-unavailable`.
 */
export const {
  attachStorage,
  backUpStore,
  inspectStore,
  openReader,
  openSalvage,
  openStorage,
  planOpening,
  restoreStore,
} = storesOf<typeof entities>(
  entities,
  ({ code, message, cause }) => new DomainError(code, message, { cause }),
)

export interface Storage extends engine.Storage<typeof entities> {}
export interface MainStorage extends engine.MainStorage<typeof entities> {}
export interface StoreReader extends engine.StoreReader<typeof entities> {}
export interface StoreReport extends engine.StoreReport<typeof entities> {}

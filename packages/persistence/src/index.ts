export { entities } from './entities.ts'
export {
  attachStorage,
  backUpStore,
  inspectStore,
  type MainStorage,
  openReader,
  openSalvage,
  openStorage,
  planOpening,
  restoreStore,
  type Storage,
  type StoreReader,
  type StoreReport,
} from './open.ts'

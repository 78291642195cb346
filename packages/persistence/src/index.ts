export { entities } from './entities.ts'
export {
  attachStorage,
  type BackupReport,
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

import type { Entities } from './entity.ts'
import {
  attachStorage,
  backUpStore,
  inspectStore,
  openReader,
  openSalvage,
  openStorage,
  planOpening,
  restoreStore,
} from './open.ts'
import type {
  CopyOptions,
  StorageHandle,
  StorageObserver,
  StorageOptions,
  StoreContent,
} from './types.ts'

/** Returns what can be done with the stores of this content. `open.ts` describes each. */
export function storesOf<Entered extends Entities>(content: StoreContent<Entered>) {
  return {
    openStorage: (options: StorageOptions) => openStorage(content, options),
    planOpening: (url: string) => planOpening(content, url),
    attachStorage: (shared: StorageHandle, observer?: StorageObserver) =>
      attachStorage(content, shared, observer),
    openReader: (url: string) => openReader(content, url),
    openSalvage: (url: string) => openSalvage(content, url),
    inspectStore: (url: string) => inspectStore(content, url),
    backUpStore: (url: string, target: string, options?: CopyOptions) =>
      backUpStore(content, url, target, options),
    restoreStore: (url: string, backup: string, options?: CopyOptions) =>
      restoreStore(content, url, backup, options),
  }
}

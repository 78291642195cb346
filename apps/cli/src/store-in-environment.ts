import { statSync } from 'node:fs'
import {
  defaultStoreUrl,
  NoStoreError,
  openReader,
  openStorage,
  parseStoreUrl,
  type Storage,
  type StorageOptions,
  type StoreReader,
  storageName,
} from '@plant-store/persistence'
import { exitCodes, Failure, fileFailure } from './failure.ts'

/** Returns the URL in DATABASE_URL, read as the server reads it. */
export function storeUrl(): string {
  const { DATABASE_URL } = process.env
  const url = DATABASE_URL || defaultStoreUrl
  try {
    parseStoreUrl(url)
  } catch (error) {
    throw new Failure(`DATABASE_URL ${(error as Error).message}`, exitCodes.usage)
  }
  return url
}

/** Like {@link storeUrl}. @throws Failure if the URL names a file that does not exist */
export function existingStoreUrl(): string {
  const url = storeUrl()
  const location = parseStoreUrl(url)
  if (location.kind !== 'file') return url
  try {
    if (statSync(location.file, { throwIfNoEntry: false })) return url
  } catch (error) {
    throw fileFailure(location.file, error)
  }
  throw noStore(url)
}

/** Opens the store to list what it has. Changes nothing. @throws Failure if there is none */
export async function readStore(): Promise<StoreReader> {
  const url = storeUrl()
  return openReader(url).catch(error => {
    throw error instanceof NoStoreError ? noStore(url) : error
  })
}

/** Opens the store to change what it has. @throws Failure if there is none */
export async function changeStore(): Promise<Storage> {
  await (await readStore())[Symbol.asyncDispose]()
  return openStore({ url: storeUrl() })
}

/** Opens a store to change it, and says so if that migrates it. */
export async function openStore(options: StorageOptions): Promise<Storage> {
  const storage = await openStorage(options)
  const { versionBefore, schemaVersion } = storage
  if (versionBefore !== undefined && versionBefore !== schemaVersion)
    process.stderr.write(`The store was migrated from schema version ${versionBefore} to ${schemaVersion}.\n`)
  return storage
}

function noStore(url: string): Failure {
  const advice = 'set DATABASE_URL, or change to the folder of the server'
  return new Failure(`there is no store at ${storageName(url)}: ${advice}`)
}

import { readSetting } from '@plant-store/api/setting'
import {
  type Parse,
  storeUrl as parseUrl,
  walLimit,
  walLimitDefault,
} from '@plant-store/api/units'
import { defaultStoreUrl, messageOf, type StorageOptions } from '@plant-store/engine'
import {
  openReader,
  openStorage,
  type Storage,
  type StoreReader,
} from '@plant-store/persistence'
import { CommandError, exitCodes } from './command-error.ts'

/** Returns the URL in DATABASE_URL. */
export function storeUrl(): string {
  return setting('DATABASE_URL', parseUrl) ?? defaultStoreUrl
}

/**
 * Returns a setting, read as the server reads it.
 *
 * @throws CommandError if its value is invalid
 */
function setting<Value>(name: string, parse: Parse<Value>): Value | undefined {
  try {
    return readSetting(process.env, name, parse)
  } catch (error) {
    throw new CommandError(messageOf(error), exitCodes.usage)
  }
}

/** Opens the store to list what it has, and changes nothing. */
export function readStore(): Promise<StoreReader> {
  return openReader(storeUrl())
}

/**
 * Opens the store to change what it has.
 *
 * @throws NoStoreError
 */
export async function changeStore(options: OpenOptions = {}): Promise<Storage> {
  const reader = await readStore()
  await reader[Symbol.asyncDispose]()
  return openStore(options)
}

type OpenOptions = Pick<StorageOptions, 'timeoutMs' | 'lockTimeoutMs' | 'walBytesMax'>

/**
 * Opens the store to change it, and creates it if needed. Only a server migrates one: an
 * older server may have it open. Its WAL may become as long as WAL_LIMIT says.
 */
export async function openStore({
  walBytesMax = Number.POSITIVE_INFINITY,
  ...options
}: OpenOptions = {}): Promise<Storage> {
  const limit = setting('WAL_LIMIT', walLimit) ?? walLimit(walLimitDefault)
  return openStorage({
    url: storeUrl(),
    walBytesMax: Math.min(walBytesMax, limit),
    ...options,
  })
}

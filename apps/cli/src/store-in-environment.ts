import { defaultStoreUrl, parseStoreUrl } from '@plant-store/persistence'
import { exitCodes, Failure } from './failure.ts'

/** Returns the URL in DATABASE_URL, read as the server reads it. */
export function storeUrl(): string {
  const { DATABASE_URL } = process.env
  const url = DATABASE_URL || defaultStoreUrl
  try {
    if (parseStoreUrl(url).kind === 'memory')
      throw new Error('must not be a store in the memory of one process')
  } catch (error) {
    throw new Failure(`DATABASE_URL ${(error as Error).message}`, exitCodes.usage)
  }
  return url
}

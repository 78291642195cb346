import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { defaultStoreUrl, parseStoreUrl } from '@plant-store/persistence'
import { exitCodes, Failure } from './failure.ts'

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
  if (location.kind === 'file' && !existsSync(location.file)) {
    const file = resolve(location.file)
    throw new Failure(`there is no store at ${file}: set DATABASE_URL, or change to the folder of the server`)
  }
  return url
}

import { accessSync, constants } from 'node:fs'
import { dirname } from 'node:path'
import {
  codeOf,
  hasNoInode,
  isDamage,
  messageOf,
  noInodeReason,
  reasonOf,
  StoreDamagedError,
} from '../errors.ts'
import { filesOf } from '../store-url.ts'

/** SQLite takes paths of 512 bytes, with the name of the longest file beside a store. */
const pathBytesMax = 512 - '-journal'.length

/**
 * Does the work. If it fails, the reason is in the words of {@link reasonOf}.
 *
 * @param file the store that the work opens
 */
export async function withReason<Result>(
  work: () => Result,
  file?: string,
): Promise<Awaited<Result>> {
  try {
    return await work()
  } catch (cause) {
    const reason = reasonOf(cause)
    if (isDamage(cause)) {
      throw new StoreDamagedError(reason, { cause })
    }
    const code = codeOf(cause)
    const isNotOpened =
      code.startsWith('SQLITE_CANTOPEN') || code === 'SQLITE_READONLY_DIRECTORY'
    if (file !== undefined && isNotOpened) {
      throw new Error(whyNotOpened(file), { cause })
    }
    const isInWords = messageOf(cause) === reason
    throw isInWords ? cause : new Error(reason, { cause })
  }
}

/**
 * Returns the reason of the system, which SQLite leaves out, why a store cannot be
 * opened.
 */
function whyNotOpened(file: string) {
  if (Buffer.byteLength(file) > pathBytesMax) {
    return `the path is longer than ${pathBytesMax} bytes, the most that SQLite takes`
  }
  for (const path of filesOf(file)) {
    const reason = whyNotAccessible(path)
    if (reason !== undefined) {
      return `${path}: ${reason}`
    }
  }

  const folder = dirname(file)
  const folderReason = whyNotAccessible(folder)
  if (folderReason !== undefined) {
    return `no file can be created in ${folder}: ${folderReason}`
  }
  return hasNoInode(folder) ? noInodeReason : 'the file cannot be opened'
}

/**
 * Returns why a file may not be read and written, or `undefined` if it may or is absent.
 */
function whyNotAccessible(path: string) {
  try {
    accessSync(path, constants.R_OK | constants.W_OK)
    return
  } catch (error) {
    const isAbsent = codeOf(error) === 'ENOENT'
    return isAbsent ? undefined : reasonOf(error)
  }
}

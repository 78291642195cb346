import { accessSync, constants } from 'node:fs'
import { dirname } from 'node:path'
import {
  fileReason,
  hasNoInode,
  isDamage,
  noInodeReason,
  StoreDamagedError,
} from '../errors.ts'
import { filesOf } from '../store-url.ts'

const reasons: Readonly<Record<string, string>> = {
  SQLITE_BUSY: 'another program keeps it locked',
  SQLITE_CANTOPEN: 'the file cannot be opened',
  SQLITE_CORRUPT: 'it is damaged',
  SQLITE_FULL: 'the disk is full',
  SQLITE_IOERR: 'the disk fails',
  SQLITE_READONLY: 'it may not be written',
  SQLITE_READONLY_ROLLBACK:
    'a change was interrupted: start the server, which takes it back, or move a journal of another store away',
}

/** SQLite takes paths of 512 bytes, with the name of the longest file beside a store. */
const pathBytesMax = 512 - '-journal'.length

/** Returns the code of an error of SQLite or the system, or an empty text. */
export function codeOf(error: unknown): string {
  const hasCode = error instanceof Error && 'code' in error
  return hasCode ? `${error.code}` : ''
}

/** Returns whether another process held the lock, so that nothing was written. */
export function isBusy(error: unknown): boolean {
  return codeOf(error).startsWith('SQLITE_BUSY')
}

/** Returns whether a file is damaged, or no database. */
export function isUnreadable(error: unknown): boolean {
  return isDamage(error) || codeOf(error) === 'SQLITE_NOTADB'
}

/**
 * Returns the reason of SQLite or the system, in words that follow "because" or a colon.
 */
export function reasonOf(error: unknown): string {
  const code = codeOf(error)
  const primaryCode = /^SQLITE_[A-Z]+/.exec(code)?.[0] ?? ''
  return reasons[code] ?? reasons[primaryCode] ?? fileReason(error)
}

/** Returns the reason with SQLite's code, for logs. */
export function detailedReasonOf(error: unknown): string {
  const code = codeOf(error)
  const reason = reasonOf(error)
  return code === '' ? reason : `${reason} (${code})`
}

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
    throw inWords(cause, file)
  }
}

function inWords(error: unknown, file: string | undefined): unknown {
  const reason = reasonOf(error)
  if (isDamage(error)) {
    return new StoreDamagedError(reason, { cause: error })
  }
  const isNotOpened =
    reason === reasons['SQLITE_CANTOPEN'] || codeOf(error) === 'SQLITE_READONLY_DIRECTORY'
  if (file !== undefined && isNotOpened) {
    return new Error(whyNotOpened(file), { cause: error })
  }
  const isInWords = error instanceof Error && error.message === reason
  if (isInWords) {
    return error
  }
  return new Error(reason, { cause: error })
}

/**
 * Returns the reason of the system, which SQLite leaves out, why a store cannot be
 * opened.
 */
function whyNotOpened(file: string): string {
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
  if (hasNoInode(folder)) {
    return noInodeReason
  }
  return 'the file cannot be opened'
}

/**
 * Returns why a file may not be read and written, or `undefined` if it may or is absent.
 */
function whyNotAccessible(path: string): string | undefined {
  try {
    accessSync(path, constants.R_OK | constants.W_OK)
    return undefined
  } catch (error) {
    const isAbsent = codeOf(error) === 'ENOENT'
    if (isAbsent) {
      return undefined
    }
    return fileReason(error)
  }
}

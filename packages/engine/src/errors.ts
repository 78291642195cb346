import { statfsSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * A store refuses. With `store-busy` nothing was changed. With `store-unavailable` a
 * change may have been made.
 */
export class StoreError extends Error {
  override readonly name: string = 'StoreError'
  readonly code: 'store-busy' | 'store-unavailable'

  constructor(code: StoreError['code'], message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/** Another process has the store open. */
export class StoreInUseError extends Error {
  override readonly name = 'StoreInUseError'

  constructor(file: string, options?: ErrorOptions) {
    super(`the store ${file} is in use: stop the server first`, options)
  }
}

/** There is no file, or the database has no tables. */
export class NoStoreError extends Error {
  override readonly name = 'NoStoreError'
}

/** A file of a store is damaged. */
export class StoreDamagedError extends Error {
  override readonly name = 'StoreDamagedError'
}

/**
 * @param cause the reason, which only operators learn. It is an Error, because logs write
 *   out only errors
 */
export function unavailableError(message: string, cause?: Error): StoreError {
  return new StoreError('store-unavailable', message, cause && { cause })
}

/** Returns whether an error or its cause is a damaged file. */
export function isDamage(error: unknown): boolean {
  if (!(error instanceof Error)) {
    return false
  }
  return (
    error instanceof StoreDamagedError ||
    codeOf(error).startsWith('SQLITE_CORRUPT') ||
    isDamage(error.cause)
  )
}

/**
 * Returns what a thrown value says to people. The ports keep the reason of
 * `store-unavailable` from clients, so it is added here.
 */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) {
    return `${error}`
  }
  const { message, code, name, cause } = error as NodeJS.ErrnoException
  if (message === '') {
    // In Node, the error of a name with several addresses has no message of its own.
    const attempts = error instanceof AggregateError ? error.errors : []
    const parts = attempts.length > 0 ? attempts : [cause ?? code ?? name]
    return [...new Set(parts.map(messageOf))].join('; ')
  }
  // A reader's messages contain the reason.
  const hasReason = !(cause instanceof Error) || message.includes(': ')
  if (code !== 'store-unavailable' || hasReason) {
    return message
  }
  return `${message}: ${messageOf(cause)}`
}

/** Returns the code of an error of SQLite or the system, or an empty text. */
export function codeOf(error: unknown): string {
  const hasCode = error instanceof Error && 'code' in error
  return hasCode ? `${error.code}` : ''
}

/** Returns the result of the work, or `undefined` if it throws. */
export function tryTo<Result>(work: () => Result): Result | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
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
 * Returns why SQLite or the system failed, in short words that follow "because" or a
 * colon.
 */
export function reasonOf(error: unknown): string {
  const code = codeOf(error)
  const { message, path } = error as NodeJS.ErrnoException
  if (code === 'ENOSPC' && path !== undefined && hasNoInode(dirname(path))) {
    return noInodeReason
  }
  const primaryCode = /^SQLITE_[A-Z]+/.exec(code)?.[0] ?? ''
  return reasons[code] ?? reasons[primaryCode] ?? message
}

/** Returns the reason, and the code behind it, as in logs. */
export function reasonWithCode(error: unknown): string {
  const code = codeOf(error)
  return code === '' ? reasonOf(error) : `${reasonOf(error)} (${code})`
}

const reasons: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EISDIR: 'it is a folder',
  ELOOP: 'its links lead in a circle',
  EMFILE: 'the process has too many open files',
  ENAMETOOLONG: 'the path is too long',
  ENOENT: 'no such file or folder',
  ENOSPC: 'the disk is full',
  ENOTDIR: 'a part of the path is not a folder',
  EPERM: 'the system does not permit it',
  EROFS: 'the file system is read-only',
  SQLITE_BUSY: 'another program keeps it locked',
  SQLITE_CANTOPEN: 'the file cannot be opened',
  SQLITE_CORRUPT: 'it is damaged',
  SQLITE_FULL: 'the disk is full',
  SQLITE_IOERR: 'the disk fails',
  SQLITE_READONLY: 'it may not be written',
  SQLITE_READONLY_ROLLBACK:
    'a change was interrupted: start the server, which takes it back, or move a journal of another store away',
}

/** A file system without inodes refuses new files, even if it has space. */
export const noInodeReason = 'the file system has no inode left for another file'

export function hasNoInode(folder: string): boolean {
  const stats = tryTo(() => statfsSync(folder))
  // Some file systems, such as btrfs, count none.
  return stats !== undefined && stats.files > 0 && stats.ffree === 0
}

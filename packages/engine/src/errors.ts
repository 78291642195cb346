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
export function unavailable(message: string, cause?: Error): StoreError {
  return new StoreError('store-unavailable', message, cause && { cause })
}

/** Leaves the errors of a store as they are. */
export function unchanged(error: StoreError): Error {
  return error
}

/** Returns whether an error or its cause is a damaged file. */
export function isDamage(error: unknown): boolean {
  if (!(error instanceof Error)) {
    return false
  }
  const { code = '' } = error as { code?: unknown }
  return (
    error instanceof StoreDamagedError ||
    `${code}`.startsWith('SQLITE_CORRUPT') ||
    isDamage(error.cause)
  )
}

/**
 * Returns an error in words, for operators. In Node, the error of a name with several
 * addresses has no message of its own. The messages of its attempts are returned instead.
 */
export function wordsOf(error: unknown): string {
  if (!(error instanceof Error)) {
    return `${error}`
  }
  const { message, code, name } = error as NodeJS.ErrnoException
  if (message !== '') {
    return message
  }
  if (error instanceof AggregateError && error.errors.length > 0) {
    const reasons = new Set(error.errors.map(wordsOf))
    return [...reasons].join('; ')
  }
  return error.cause === undefined ? (code ?? name) : wordsOf(error.cause)
}

/** Returns an error in words, with its reason. The ports keep reasons from clients. */
export function explain(error: Error): string {
  const { code, cause } = error as Error & { code?: unknown }
  const words = wordsOf(error)
  // A reader's messages contain the reason.
  const hasReason = !(cause instanceof Error) || words.includes(': ')
  if (code !== 'store-unavailable' || hasReason) {
    return words
  }
  return `${words}: ${wordsOf(cause)}`
}

/** Returns in plain words why the system refused a file. */
export function fileReason(error: unknown): string {
  const { code = '', message, path } = error as NodeJS.ErrnoException
  if (code === 'ENOSPC' && path !== undefined && hasNoInode(dirname(path))) {
    return noInodeReason
  }
  return reasons[code] ?? message
}

/** A file system without inodes refuses new files, even if it has space. */
export const noInodeReason = 'the file system has no inode left for another file'

export function hasNoInode(folder: string): boolean {
  try {
    const { files, ffree } = statfsSync(folder)
    // Some file systems, such as btrfs, count none.
    return files > 0 && ffree === 0
  } catch {
    return false
  }
}

const reasons: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EISDIR: 'it is a folder',
  EMFILE: 'the process has too many open files',
  ENAMETOOLONG: 'the path is too long',
  ENOENT: 'no such file or folder',
  ENOSPC: 'the disk is full',
  ENOTDIR: 'a part of the path is not a folder',
  EPERM: 'the system does not permit it',
  EROFS: 'the file system is read-only',
}

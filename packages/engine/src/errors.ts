/** Why a store refuses. With `store-busy` nothing was changed. With `store-unavailable` a change may have been made. */
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

/** @param cause the reason, which only operators learn. An Error, since logs write out only errors */
export function unavailable(message: string, cause?: Error): StoreError {
  return new StoreError('store-unavailable', message, cause && { cause })
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

/** Returns the message of an error with its reason, for operators. The ports keep reasons from clients. */
export function explain(error: Error): string {
  const { message, code } = error as Error & { code?: unknown }
  // A reader's messages contain the reason.
  if (
    code !== 'store-unavailable' ||
    !(error.cause instanceof Error) ||
    message.includes(': ')
  ) {
    return message
  }
  return `${message}: ${error.cause.message}`
}

/** Returns in plain words why the system refused a file. */
export function fileReason(error: unknown): string {
  const { code = '', message } = error as NodeJS.ErrnoException
  return reasons[code] ?? message
}

const reasons: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EISDIR: 'it is a folder',
  ENOENT: 'no such file or folder',
  ENOSPC: 'the disk is full',
  ENOTDIR: 'a part of the path is not a folder',
  EROFS: 'the file system is read-only',
}

import { accessSync, constants } from 'node:fs'
import { dirname } from 'node:path'
import Database from 'better-sqlite3'
import {
  fileReason,
  hasNoInode,
  isDamage,
  noInodeReason,
  StoreDamagedError,
  StoreInUseError,
} from '../errors.ts'
import type { ChangeStatement, Statement, Value } from '../statements/statement.ts'
import { filesOf } from '../store-url.ts'

/** How long a connection waits for another's lock by default. */
const busyTimeoutMs = 5_000

export function openConnection(
  file: string,
  options: Database.Options = {},
): Database.Database {
  const connection = new Database(file, { timeout: busyTimeoutMs, ...options })
  // Overwrites what is deleted: what was removed would stay in free space, and in every later backup.
  connection.pragma('secure_delete = on')
  // A large statement needs temporary space, and a read-only system has no folder for it.
  connection.pragma('temp_store = memory')
  return connection.defaultSafeIntegers(true)
}

/** Prepares statements, and returns a function that returns them. */
export function prepareAll(
  connection: Database.Database,
  statements: Iterable<Statement>,
): (statement: Statement) => Database.Statement {
  const prepared = new Map<Statement, Database.Statement>()
  const prepare = (statement: Statement) => {
    const found = prepared.get(statement) ?? connection.prepare(statement.sql)
    prepared.set(statement, found)
    return found
  }
  for (const statement of statements) {
    if (statement.kind !== 'change') {
      prepare(statement)
    }
  }
  return prepare
}

/**
 * Makes a change. Returns how many rows it affected, and how many the statement before it
 * inserted.
 */
export type PreparedChange = (values: readonly Value[]) => {
  rows: number
  rowsBefore: number
}

export function prepareChange(
  connection: Database.Database,
  { sql, before }: ChangeStatement,
): PreparedChange {
  const change = connection.prepare(sql)
  if (before === undefined) {
    return values => ({ rows: change.run(...values).changes, rowsBefore: 0 })
  }
  const onlyIf = connection.prepare(before.onlyIf)
  const first = connection.prepare(before.sql)
  return values => {
    const isNeeded = onlyIf.get() !== undefined
    const rowsBefore = isNeeded ? first.run(...values).changes : 0
    return { rows: change.run(...values).changes, rowsBefore }
  }
}

/** Opens a connection whose every commit is fsynced. */
export function openWriterConnection(file: string, timeout: number): Database.Database {
  return closeOnError(openConnection(file, { timeout }), connection => {
    waitForLock(timeout, () => connection.pragma('journal_mode = WAL'))
    // After `journal_mode = WAL`, which sets NORMAL, with which COMMIT returns before the fsync.
    connection.pragma('synchronous = FULL')
    // Otherwise macOS reports an fsync as done before the data is on disk.
    connection.pragma('fullfsync = ON')
    // The checkpointer does it.
    connection.pragma('wal_autocheckpoint = 0')
    // 16 MiB, about the pages that 2,000 rows in any order change. A longer transaction writes some of its pages
    // before the commit, and perhaps again.
    connection.pragma('cache_size = -16384')
    connection.pragma('journal_size_limit = 67108864')
    return connection
  })
}

/** Merges the WAL into the file for good, unless another connection is open: a reader then needs to write nothing. */
export function mergeWal(connection: Database.Database): void {
  try {
    connection.pragma('journal_mode = delete')
  } catch {
    // The store keeps its WAL.
  }
}

/**
 * Opens a store that may be damaged, merges its WAL into the file, and keeps other processes out until it is closed.
 * Returns `undefined` for a file that SQLite cannot read.
 *
 * @throws StoreInUseError if another process has it open
 */
export function openExclusively(file: string): Database.Database | undefined {
  try {
    return closeOnError(
      openConnection(file, { fileMustExist: true, timeout: 0 }),
      connection => {
        // Lets SQLite open a file that is shorter than its header says.
        connection.unsafeMode().pragma('writable_schema = on')
        connection.pragma('locking_mode = exclusive')
        // Every connection with a WAL holds a shared lock, so only a single one gets the exclusive lock.
        connection.pragma('wal_checkpoint(truncate)')
        return connection.exec('begin exclusive')
      },
    )
  } catch (cause) {
    if (isUnreadable(cause)) {
      return undefined
    }
    throw isBusy(cause) ? new StoreInUseError(file, { cause }) : cause
  }
}

/** Returns whether a file is damaged, or no database. */
export function isUnreadable(error: unknown): boolean {
  return isDamage(error) || (error as { code?: unknown }).code === 'SQLITE_NOTADB'
}

/** Returns the result of the work on a connection, and closes the connection if it throws or rejects. */
export function closeOnError<Result>(
  connection: Database.Database,
  work: (connection: Database.Database) => Result,
): Result {
  const close = (error: unknown): never => {
    connection.close()
    throw error
  }
  try {
    const result = work(connection)
    return result instanceof Promise ? (result.catch(close) as Result) : result
  } catch (error) {
    return close(error)
  }
}

const retryEveryMs = 10

/** SQLite does not wait for a lock if a reading transaction must become a writing one. */
function waitForLock(timeoutMs: number, act: () => void): void {
  const until = performance.now() + timeoutMs
  for (;;) {
    try {
      act()
      return
    } catch (error) {
      if (!isBusy(error) || performance.now() > until) {
        throw error
      }
      sleep()
    }
  }
}

/** Blocks the thread, by default until it may try again. */
export function sleep(ms = retryEveryMs): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

/** Returns whether another process held the lock, so that nothing was written. */
export function isBusy(error: unknown): boolean {
  return `${(error as { code?: unknown }).code}`.startsWith('SQLITE_BUSY')
}

/** Returns the reason of SQLite or the system, in words that follow "because" or a colon. */
export function reasonOf(error: unknown): string {
  const { code = '' } = error as { code?: string }
  const [, primary = ''] = /^(SQLITE_[A-Z]+)/.exec(code) ?? []
  return reasons[code] ?? reasons[primary] ?? fileReason(error)
}

/**
 * Rejects with the reason in the words of {@link reasonOf}.
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
    if (file !== undefined && reason === reasons['SQLITE_CANTOPEN']) {
      throw new Error(whyNotOpened(file), { cause })
    }
    throw reason === (cause as Error).message ? cause : new Error(reason, { cause })
  }
}

/** SQLite takes paths of 512 bytes, with the name of the longest file beside a store. */
const pathBytesMax = 512 - '-journal'.length

/** Returns the reason of the system, which SQLite leaves out, why a store cannot be opened. */
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
  return hasNoInode(folder) ? noInodeReason : 'the file cannot be opened'
}

/** Returns why a file may not be read and written, or `undefined` if it may or is absent. */
function whyNotAccessible(path: string): string | undefined {
  try {
    accessSync(path, constants.R_OK | constants.W_OK)
    return undefined
  } catch (error) {
    const isAbsent = (error as NodeJS.ErrnoException).code === 'ENOENT'
    return isAbsent ? undefined : fileReason(error)
  }
}

/** Returns the reason with SQLite's code, for logs. */
export function detailedReasonOf(error: unknown): string {
  const { code } = error as { code?: string }
  return code === undefined ? reasonOf(error) : `${reasonOf(error)} (${code})`
}

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

import Database from 'better-sqlite3'
import { fileReason } from '../file-reason.ts'
import { isDamage } from '../outage.ts'
import { StoreDamagedError } from '../storage.ts'

/** How long a connection waits for another's lock. */
const busyTimeoutMs = 5_000

/** The name of a store in memory. */
export const inMemory = ':memory:'

export function openConnection(file: string, options: Database.Options = {}): Database.Database {
  const connection = new Database(file, { ...options, timeout: busyTimeoutMs })
  connection.defaultSafeIntegers(true)
  return connection
}

/** Opens a connection whose every commit is fsynced. */
export function openWriterConnection(file: string): Database.Database {
  return closeOnError(openConnection(file), connection => {
    waitForLock(() => connection.pragma('journal_mode = WAL'))
    // After WAL, which sets NORMAL: a commit would not be fsynced.
    connection.pragma('synchronous = FULL')
    // Otherwise macOS reports an fsync as done before the data is on disk.
    connection.pragma('fullfsync = ON')
    checkpointAfter(connection, checkpointPages.alone)
    // 16 MiB, about the pages that 2,000 plants in any order change. A longer transaction writes some of its pages
    // before the commit, and perhaps again.
    connection.pragma('cache_size = -16384')
    connection.pragma('journal_size_limit = 67108864')
    return connection
  })
}

/**
 * With ids in any order a longer log holds the same page many times, and a checkpoint copies it once. 8,000 pages are
 * 32 MiB, which are read in a moment after a crash. While bulk changes fill the log beside single changes, these wait
 * for shorter checkpoints.
 */
export const checkpointPages = { alone: 8_000, shared: 1_000 }

/** @param pages of the log. The commit that reaches them copies them to the database, and all changes wait for that. */
export function checkpointAfter(connection: Database.Database, pages: number): void {
  connection.pragma(`wal_autocheckpoint = ${pages}`)
}

/** Returns the result of the work on a connection, and closes the connection if it throws. */
export function closeOnError<Result>(
  connection: Database.Database,
  work: (connection: Database.Database) => Result,
): Result {
  try {
    return work(connection)
  } catch (error) {
    connection.close()
    throw error
  }
}

const retryEveryMs = 10

/** SQLite does not wait for a lock if a reading transaction must become a writing one. */
function waitForLock(act: () => void): void {
  const until = performance.now() + busyTimeoutMs
  for (;;) {
    try {
      act()
      return
    } catch (error) {
      const isBusy = (error as { code?: unknown }).code === 'SQLITE_BUSY'
      if (!isBusy || performance.now() > until) throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, retryEveryMs)
    }
  }
}

/** Returns the reason of SQLite or the system, in words that follow "because" or a colon. */
export function reasonOf(error: unknown): string {
  const { code = '' } = error as { code?: string }
  const [, primary = ''] = /^(SQLITE_[A-Z]+)/.exec(code) ?? []
  return reasons[primary] ?? fileReason(error)
}

/** Throws the error, with its reason as the message if the file is damaged. */
export function throwPlainly(cause: unknown): never {
  throw isDamage(cause) ? new StoreDamagedError(reasonOf(cause), { cause }) : cause
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
}

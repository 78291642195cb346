import Database from 'better-sqlite3'

/** How long one connection waits for another's lock, in milliseconds. */
const busyTimeoutMs = 5_000

/** The name of a store that lives in this process' memory. */
export const inMemory = ':memory:'

export function openConnection(file: string, options: Database.Options = {}): Database.Database {
  const connection = new Database(file, { ...options, timeout: busyTimeoutMs })
  connection.defaultSafeIntegers(true)
  return connection
}

/** A connection whose every commit is fsynced. */
export function openWriterConnection(file: string): Database.Database {
  return closeOnError(openConnection(file), connection => {
    waitForLock(() => connection.pragma('journal_mode = WAL'))
    // After WAL, which alone means NORMAL: a commit that is answered but not fsynced.
    connection.pragma('synchronous = FULL')
    // Without it, macOS reports an fsync as done before the disk has it.
    connection.pragma('fullfsync = ON')
    // Pages of the log before a checkpoint. Ids come in any order, so a longer log holds the same pages many times and
    // each is copied once; 8,000 pages are 32 MiB, and are read in a moment after a crash.
    connection.pragma('wal_autocheckpoint = 8000')
    // The pages that 2,000 plants with ids in any order change: each is then written once a transaction.
    connection.pragma('cache_size = -16384')
    connection.pragma('journal_size_limit = 67108864')
    return connection
  })
}

/** Returns what the work on a new connection returns. Closes the connection when it throws. */
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

/** Where a reading transaction would have to become a writing one, SQLite does not wait for another's lock. */
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

/** Returns why SQLite refused, in words that follow "because" or a colon. */
export function reasonOf(error: unknown): string {
  const { code = '', message } = error as { code?: string; message: string }
  const [, primary = ''] = /^(SQLITE_[A-Z]+)/.exec(code) ?? []
  return reasons[primary] ?? message
}

/** The same with SQLite's code, for logs. */
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
  SQLITE_NOTADB: 'it is not a SQLite database',
  SQLITE_READONLY: 'it may not be written',
}

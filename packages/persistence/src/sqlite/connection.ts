import Database from 'better-sqlite3'

/** How long one connection waits for another's lock, in milliseconds. */
export const busyTimeoutMs = 5_000

/** The name of a store that lives in this process' memory. */
export const inMemory = ':memory:'

/** A connection for reading. */
export function openReader(file: string): Database.Database {
  const connection = new Database(file, { readonly: true, fileMustExist: true, timeout: busyTimeoutMs })
  connection.defaultSafeIntegers(true)
  return connection
}

/** A connection that may write, to a file that may not be there yet. */
export function openConnection(file: string): Database.Database {
  const connection = new Database(file, { timeout: busyTimeoutMs })
  connection.defaultSafeIntegers(true)
  return connection
}

/** The connection for changes; a store has one, and every commit on it is fsynced. */
export function openWriterConnection(file: string): Database.Database {
  const connection = openConnection(file)
  waitForLock(() => connection.pragma('journal_mode = WAL'))
  // After WAL, which on its own means NORMAL: a commit that is answered but not fsynced.
  connection.pragma('synchronous = FULL')
  // macOS takes an fsync for done before the disk has it, unless told otherwise.
  connection.pragma('fullfsync = ON')
  // Pages of the log before it is taken into the database. Ids come in any order, so that a longer log holds the same
  // pages many times over, and each is then copied once; 8,000 pages are 32 MiB, and read in a moment after a crash.
  connection.pragma('wal_autocheckpoint = 8000')
  // The inner pages of ten million plants; of the leaves, ids in any order seldom find one that is there.
  connection.pragma('cache_size = -4096')
  connection.pragma('journal_size_limit = 67108864')
  return connection
}

/** For how long a lock is left alone, in milliseconds, before it is asked for again. */
const askAgainMs = 10

/** Where a transaction would have to become one that writes, SQLite gives up at once when somebody else is writing. */
function waitForLock(act: () => void): void {
  const until = performance.now() + busyTimeoutMs
  for (;;) {
    try {
      act()
      return
    } catch (error) {
      const isBusy = (error as { code?: unknown }).code === 'SQLITE_BUSY'
      if (!isBusy || performance.now() > until) throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, askAgainMs)
    }
  }
}

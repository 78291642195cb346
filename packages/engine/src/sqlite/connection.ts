import Sqlite, { type Database } from 'better-sqlite3'
import { isBusy, isUnreadable, StoreInUseError, tryTo } from '../errors.ts'
import type { Prepare, PreparedRead, Row } from '../statements/read-rows.ts'
import type { ChangeStatement, Statement, Value } from '../statements/statement.ts'

/** The pause between two attempts to get a lock. */
const retryEveryMs = 10

/** By default, a connection waits for the lock of another one for 5 s. */
export function openConnection(file: string, options?: Sqlite.Options): Database {
  const connection = new Sqlite(file, options)
  // Overwrite what is deleted. It would stay in free space, and in every later backup.
  connection.pragma('secure_delete = on')
  // A large statement needs temporary space, and a read-only system has no folder for it.
  connection.pragma('temp_store = memory')
  return connection.defaultSafeIntegers(true)
}

/** Opens a connection whose every commit is fsynced. */
export function openWriterConnection(file: string, timeout: number): Database {
  return closeOnError(openConnection(file, { timeout }), connection => {
    switchToWal(connection, timeout)
    // With a WAL, better-sqlite3's SQLite would use NORMAL: COMMIT would make no fsync.
    connection.pragma('synchronous = FULL')
    // Without this, macOS reports an fsync as done before the data is on the disk.
    connection.pragma('fullfsync = ON')
    // The checkpointer copies the WAL.
    connection.pragma('wal_autocheckpoint = 0')
    // 16 MiB are about the pages that 2,000 rows in any order change. A longer
    // transaction writes some of its pages before the commit, and perhaps again.
    connection.pragma('cache_size = -16384')
    connection.pragma('journal_size_limit = 67108864')
    return connection
  })
}

/**
 * Opens a store that may be damaged, merges its WAL into the file, and keeps other
 * processes out until it is closed. Returns `undefined` for a file that SQLite cannot
 * read.
 *
 * @throws StoreInUseError if another process has it open
 */
export function openExclusively(file: string): Database | undefined {
  try {
    const connection = openConnection(file, { fileMustExist: true, timeout: 0 })
    return closeOnError(connection, () => {
      allowShortFile(connection)
      connection.pragma('locking_mode = exclusive')
      // Every connection with a WAL holds a shared lock, so only a single connection can
      // get the exclusive lock.
      connection.pragma('wal_checkpoint(truncate)')
      return connection.exec('begin exclusive')
    })
  } catch (cause) {
    if (isUnreadable(cause)) {
      return
    }
    throw isBusy(cause) ? new StoreInUseError(file, { cause }) : cause
  }
}

/** Lets SQLite open a file that is shorter than its header says. */
export function allowShortFile(connection: Database) {
  connection.unsafeMode().pragma('writable_schema = on')
}

/**
 * Merges the WAL into the file for good, so that reading the store needs no write. If
 * another connection is open, the store keeps its WAL.
 */
export function mergeWal(connection: Database) {
  tryTo(() => connection.pragma('journal_mode = delete'))
}

/** Returns the result of the work on a connection, which is closed if the work throws. */
export function closeOnError<Result>(
  connection: Database,
  work: (connection: Database) => Result,
) {
  try {
    return work(connection)
  } catch (error) {
    connection.close()
    throw error
  }
}

/** Returns the first column of the rows that a statement selects. */
export function readColumn(connection: Database, sql: string) {
  return connection.prepare<[], string>(sql).pluck().all()
}

/** Returns a function that prepares each statement once, when it is first needed. */
export function prepareWhenNeeded(connection: Database): Prepare {
  const prepared = new Map<Statement, PreparedRead>()
  return statement => {
    const ready =
      prepared.get(statement) ??
      connection.prepare<[readonly unknown[]], Row>(statement.sql)
    prepared.set(statement, ready)
    return ready
  }
}

/**
 * Makes a change. Returns how many rows it affected, where one that was replaced counts
 * twice, and how many the preceding statement affected.
 */
export type MakeChange = (values: readonly Value[]) => {
  readonly rows: number
  readonly rowsOfPreceding: number
}

export function prepareChange(
  connection: Database,
  { sql, preceding, otherwise }: Pick<ChangeStatement, 'sql' | 'preceding' | 'otherwise'>,
): MakeChange {
  const change = connection.prepare(sql)
  const before = preceding && {
    onlyIf: connection.prepare(preceding.onlyIf),
    change: connection.prepare(preceding.sql),
  }
  const instead = otherwise && prepareChange(connection, otherwise)
  return values => {
    const isNeeded = before?.onlyIf.get() !== undefined
    const rowsOfPreceding = isNeeded ? before.change.run(...values).changes : 0
    const rows = change.run(...values).changes
    if (instead === undefined) {
      return { rows, rowsOfPreceding }
    }
    // A row that was replaced counts twice.
    return rows > 0 ? { rows: 2 * rows, rowsOfPreceding } : instead(values)
  }
}

/**
 * Gives a store a WAL once no other process holds the lock. SQLite itself does not wait
 * for a lock if a reading transaction must become a writing one.
 */
function switchToWal(connection: Database, timeoutMs: number) {
  const endMs = performance.now() + timeoutMs
  while (true) {
    try {
      connection.pragma('journal_mode = WAL')
      return
    } catch (error) {
      if (!isBusy(error) || performance.now() > endMs) {
        throw error
      }
      sleep()
    }
  }
}

/** Blocks the thread, by default until another attempt is due. */
export function sleep(ms = retryEveryMs) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

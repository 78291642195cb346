import { closeSync, existsSync, fstatSync, openSync, writeSync } from 'node:fs'
import Database from 'better-sqlite3'
import { logSuffixes } from '../replace-file.ts'
import { StoreInUseError } from '../storage.ts'

/** A store that nobody else can open until it is disposed of, with no log beside it. */
interface TakenStore extends Disposable {
  /**
   * Once another file has the store's name: whoever opened the store just before waits for a lock on what is no store
   * any more, and would go on to use a file that has no name. So its first page is overwritten.
   */
  spoil(): void
}

/**
 * In WAL mode every connection holds a shared lock on the file, so that only one that is alone gets the exclusive one.
 * With it, SQLite takes the log into the file and removes it.
 *
 * @returns `undefined` for a file that is no store and has no log beside it: a store in use has one
 * @throws StoreInUseError, or Error when nobody can tell
 */
export function takeAlone(file: string): TakenStore | undefined {
  const connection = new Database(file, { fileMustExist: true, timeout: 0 })
  try {
    connection.pragma('locking_mode = exclusive')
    connection.pragma('journal_mode = delete')
    connection.exec('begin exclusive')
    // Closed after the connection: closing any descriptor of a file gives up the locks that a process has on it.
    const descriptor = openSync(file, 'r+')
    return {
      spoil() {
        if (fstatSync(descriptor).nlink === 0) writeSync(descriptor, 'replaced by another file', 0)
      },
      [Symbol.dispose]() {
        connection.close()
        closeSync(descriptor)
      },
    }
  } catch (cause) {
    connection.close()
    const { code = '', message } = cause as { code?: string; message: string }
    if (code.startsWith('SQLITE_BUSY')) {
      throw new StoreInUseError(`the store ${file} is in use: stop the server first`, { cause })
    }
    if (code === 'SQLITE_NOTADB' && !logSuffixes.some(suffix => existsSync(file + suffix))) return undefined
    throw new Error(
      `${file} can not be read (${message}), so nobody can tell whether a server uses it: stop the server, move ${file} and its -wal away, and try again`,
      { cause },
    )
  }
}

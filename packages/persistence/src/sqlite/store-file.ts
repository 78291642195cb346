import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import Database from 'better-sqlite3'
import { type CopyOptions, StoreInUseError, type StoreReport } from '../storage.ts'
import { openQuery, versionOf } from './query.ts'

/** Pages between two turns of the event loop: a few milliseconds. */
const copyPages = 1_000

/** What a store holds, read from one moment of it while others may change it. */
export function inspectSqlite(file: string): StoreReport {
  const connection = openQuery(file)
  try {
    connection.exec('begin')
    const found = connection.prepare('pragma integrity_check(10)').pluck().all() as string[]
    if (found[0] !== 'ok') throw new Error(`it is damaged: ${found.join('; ').replaceAll('\n', ' ')}`)
    return { store: file, bytes: statSync(file).size, ...contentsOf(connection) }
  } finally {
    connection.close()
  }
}

export async function backUpSqlite(file: string, target: string, options: CopyOptions): Promise<StoreReport> {
  const partial = partialOf(resolve(target))
  try {
    const report = await copyWhole(file, partial, options)
    renameSync(partial, target)
    syncFile(dirname(partial))
    return { ...report, store: target }
  } finally {
    removeDatabase(partial)
  }
}

/**
 * The copy is made and checked beside the store. Then nobody may have the store open: in WAL mode every connection
 * holds a shared lock on the file, so that only who is alone gets the exclusive one; with it, SQLite takes the log
 * into the file and removes it, and nobody else gets in until the copy has taken the store's name.
 *
 * Who opened the file in that moment waits for a lock on what is no store any more. So its first page is
 * overwritten, or they would go on to use a file that has no name.
 */
export async function restoreSqlite(
  named: string,
  backup: string,
  options: CopyOptions,
): Promise<StoreReport> {
  if (!existsSync(backup)) throw new Error('there is no such file')
  createFolder(dirname(resolve(named)))
  const file = existsSync(named) ? realpathSync(named) : resolve(named)
  if (existsSync(file)) takeAlone(file).close()

  const partial = partialOf(file)
  try {
    const report = await copyWhole(backup, partial, options)
    if (existsSync(file)) {
      const store = takeAlone(file)
      // Not closed before the connection: closing any descriptor of a file gives up the locks that a process has on it.
      const replaced = openSync(file, 'r+')
      try {
        renameSync(partial, file)
        writeSync(replaced, 'replaced by a restored store', 0)
      } finally {
        store.close()
        closeSync(replaced)
      }
    } else {
      removeDatabase(file)
      renameSync(partial, file)
    }
    syncFile(dirname(file))
    return { ...report, store: named }
  } finally {
    removeDatabase(partial)
  }
}

/** A connection that has the store to itself until it is closed, and no log beside it. */
function takeAlone(file: string): Database.Database {
  const connection = new Database(file, { fileMustExist: true, timeout: 0 })
  try {
    connection.pragma('locking_mode = exclusive')
    connection.pragma('journal_mode = delete')
    connection.exec('begin exclusive')
    return connection
  } catch (cause) {
    connection.close()
    const { code = '', message } = cause as { code?: string; message: string }
    if (code.startsWith('SQLITE_BUSY')) {
      throw new StoreInUseError(`the store ${file} is in use: stop the server first`, { cause })
    }
    throw new Error(
      `the store that is there can not be read (${message}), so it can't be told whether a server has it open: stop the server, move ${file} away, and restore again`,
      { cause },
    )
  }
}

/** Copies a database, as it is now, into a new file that holds it whole, with no log beside it, checked and durable. */
async function copyWhole(
  from: string,
  to: string,
  { onProgress, signal }: CopyOptions,
): Promise<StoreReport> {
  const source = openQuery(from)
  try {
    // Held until the copy is whole: it is of this moment, and doesn't begin anew with each change that others make.
    source.exec('begin')
    const expected = contentsOf(source)
    await source.backup(to, {
      progress({ totalPages, remainingPages }) {
        signal?.throwIfAborted()
        onProgress?.({ pages: totalPages - remainingPages, ofPages: totalPages })
        return copyPages
      },
    })
    signal?.throwIfAborted()

    const copied = new Database(to)
    copied.pragma('journal_mode = delete')
    copied.close()
    const report = inspectSqlite(to)
    if (!holds(report, expected)) {
      throw new Error('the copy does not hold what was copied')
    }
    syncFile(to)
    return report
  } finally {
    source.close()
  }
}

type Contents = Pick<StoreReport, 'schemaVersion' | 'plants' | 'tokens'>

function contentsOf(connection: Database.Database): Contents {
  const count = (table: string) => Number(connection.prepare(`select count(*) from ${table}`).pluck().get())
  return { schemaVersion: versionOf(connection), plants: count('plants'), tokens: count('access_tokens') }
}

function holds(report: StoreReport, { schemaVersion, plants, tokens }: Contents): boolean {
  return report.schemaVersion === schemaVersion && report.plants === plants && report.tokens === tokens
}

/** In the same folder, so that it can take the file's name in one step. */
function partialOf(file: string): string {
  return join(dirname(file), `.${basename(file)}.${process.pid}.part`)
}

function removeDatabase(file: string): void {
  for (const suffix of ['', '-journal', '-wal', '-shm']) rmSync(file + suffix, { force: true })
}

function syncFile(file: string): void {
  const descriptor = openSync(file, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/** A folder that was just made is lost with the power unless the one above it is fsynced. */
export function createFolder(folder: string): void {
  if (existsSync(folder)) return
  createFolder(dirname(folder))
  mkdirSync(folder, { recursive: true })
  const above = openSync(dirname(folder), 'r')
  fsyncSync(above)
  closeSync(above)
}

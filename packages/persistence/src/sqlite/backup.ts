import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readSync,
  statSync,
} from 'node:fs'
import { dirname, resolve } from 'node:path'
import Database from 'better-sqlite3'
import { replaceFile } from '../replace-file.ts'
import type { CopyOptions, RestoreReport, StoreReport } from '../storage.ts'
import { tokensHeld } from '../tables.ts'
import { versionOf } from './migrate.ts'
import { openReadOnly } from './snapshot.ts'

/** Pages between two turns of the event loop: a few milliseconds. */
const copyPages = 1_000

/** What a store holds, read from one moment of it while others may change it. */
export function inspectSqlite(file: string): Omit<StoreReport, 'store'> {
  const connection = openReadOnly(file)
  try {
    connection.exec('begin')
    const found = connection.prepare('pragma integrity_check(10)').pluck().all() as string[]
    if (found[0] !== 'ok') throw new Error(`it is damaged: ${found.join('; ').replaceAll('\n', ' ')}`)
    return { bytes: statSync(file).size, ...contentsOf(connection) }
  } finally {
    connection.close()
  }
}

export async function backUpSqlite(file: string, target: string, options: CopyOptions): Promise<StoreReport> {
  const report = await replaceFile(target, options, partial => copyFor(target, file, partial, options))
  return { ...report, store: target }
}

/** The copy is made and checked beside the store, before anybody has to have closed the store. */
export async function restoreSqlite(
  store: string,
  backup: string,
  options: CopyOptions,
): Promise<RestoreReport> {
  if (!existsSync(backup)) throw new Error('there is no such file')
  refuseForeignLog(backup)
  createFolder(dirname(resolve(store)))
  return replaceFile(store, options, async partial => {
    const report = await copyFor(store, backup, partial, options)
    return { ...report, store, revokedTokens: revokedTokens(partial, store) }
  })
}

/**
 * SQLite takes any log beside a file for the file's own. A file that keeps none, as a backup, says so in its header.
 *
 * @throws Error when there is one beside such a file
 */
function refuseForeignLog(file: string): void {
  const log = [`${file}-wal`, `${file}-journal`].find(each => existsSync(each))
  if (log === undefined) return
  const descriptor = openSync(file, 'r')
  const header = Buffer.alloc(20)
  readSync(descriptor, header, 0, header.length, 0)
  closeSync(descriptor)
  if (header[18] === 1) throw new Error(`${log} is the log of another store: move it away`)
}

/** The names of the tokens that a backup has and the store that it replaces has not, as far as that can be read. */
function revokedTokens(backup: string, store: string): readonly string[] | undefined {
  const connection = openReadOnly(backup)
  try {
    if (!existsSync(store)) return []
    connection.prepare('attach ? as store').run(store)
    return connection
      .prepare(
        `select name from ${tokensHeld} and hash not in (select hash from store.access_tokens) order by name`,
      )
      .pluck()
      .all() as string[]
  } catch {
    return undefined
  } finally {
    connection.close()
  }
}

/** As `copyWhole`, for whoever the file is for that the copy takes the place of, but never for everybody. */
async function copyFor(
  replaced: string,
  from: string,
  to: string,
  options: CopyOptions,
): Promise<Omit<StoreReport, 'store'>> {
  const report = await copyWhole(from, to, options)
  const stat = statSync(replaced, { throwIfNoEntry: false })
  try {
    if (stat) {
      chownSync(to, stat.uid, stat.gid)
      chmodSync(to, stat.mode & 0o660)
    }
  } catch {
    // It can't be given to another user: it is for this one then.
  }
  return report
}

/** Copies a database, as it is now, into a new file that holds it whole, with no log beside it, checked and durable. */
async function copyWhole(
  from: string,
  to: string,
  { onProgress, signal }: CopyOptions,
): Promise<Omit<StoreReport, 'store'>> {
  const source = openReadOnly(from)
  try {
    closeSync(openSync(to, 'wx', privateMode))
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
    return report
  } finally {
    source.close()
  }
}

type Contents = Pick<StoreReport, 'schemaVersion' | 'plants' | 'tokens'>

function contentsOf(connection: Database.Database): Contents {
  const count = (table: string) => Number(connection.prepare(`select count(*) from ${table}`).pluck().get())
  return { schemaVersion: versionOf(connection), plants: count('plants'), tokens: count(tokensHeld) }
}

function holds(report: Contents, { schemaVersion, plants, tokens }: Contents): boolean {
  return report.schemaVersion === schemaVersion && report.plants === plants && report.tokens === tokens
}

/** Plants and hashes of tokens are for whoever runs the server; SQLite gives its log the mode of the file. */
const privateMode = 0o600

/** Makes the file of a store, empty, where there is none, and the folders that it is in. */
export function createStoreFile(file: string): void {
  createFolder(dirname(resolve(file)))
  closeSync(openSync(file, 'a', privateMode))
}

/** A folder that was just made is lost with the power unless the one above it is fsynced. */
function createFolder(folder: string): void {
  if (existsSync(folder)) return
  createFolder(dirname(folder))
  try {
    // Not `recursive`: below a folder that takes none, such as /proc, Node would try for ever.
    mkdirSync(folder)
  } catch (error) {
    if ((error as { code?: string }).code !== 'EEXIST') throw error
  }
  const above = openSync(dirname(folder), 'r')
  fsyncSync(above)
  closeSync(above)
}

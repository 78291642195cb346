import { chmodSync, chownSync, closeSync, existsSync, openSync, readSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import Database from 'better-sqlite3'
import { isDamage } from '../outage.ts'
import { replaceFile } from '../replace-file.ts'
import {
  type CopyOptions,
  type RestoreReport,
  StoreDamagedError,
  StoreInUseError,
  type StoreReport,
} from '../storage.ts'
import { tokensHeld } from '../tables.ts'
import { reasonOf, throwPlainly } from './connection.ts'
import { createFolder, privateMode, versionOf } from './migrate.ts'
import { openReadOnly } from './snapshot.ts'

/** Pages in one turn of the event loop: a few milliseconds. */
const copyPages = 1_000

type Contents = Pick<StoreReport, 'schemaVersion' | 'plants' | 'tokens'>
type FileReport = Omit<StoreReport, 'store'>

/** Checks a store and counts its plants and tokens as of one moment, while others change it. */
export function inspectSqlite(file: string): FileReport {
  try {
    return inspect(file)
  } catch (cause) {
    throwPlainly(cause)
  }
}

function inspect(file: string): FileReport {
  const connection = openReadOnly(file)
  try {
    connection.exec('begin')
    const found = connection.prepare('pragma integrity_check(10)').pluck().all() as string[]
    if (found[0] !== 'ok')
      throw new StoreDamagedError(`it is damaged: ${found.join('; ').replaceAll('\n', ' ')}`)
    return { bytes: statSync(file).size, ...contentsOf(connection) }
  } finally {
    connection.close()
  }
}

export async function backUpSqlite(file: string, target: string, options: CopyOptions): Promise<StoreReport> {
  const copy = (partial: string) => copyFor(target, file, partial, options)
  const report = await replaceFile(target, options, copy).catch(
    failed(`the store ${file} could not be backed up to ${target}`),
  )
  return { ...report, store: target }
}

export function restoreSqlite(store: string, backup: string, options: CopyOptions): Promise<RestoreReport> {
  return restore(store, backup, options).catch(
    failed(`the store ${store} could not be restored from ${backup}`),
  )
}

function failed(what: string): (cause: unknown) => never {
  return cause => {
    if (cause instanceof StoreInUseError) throw cause
    throw new Error(`${what}: ${reasonOf(cause)}`, { cause })
  }
}

/** Makes and checks the copy beside the store, which may still be in use then. */
async function restore(store: string, backup: string, options: CopyOptions): Promise<RestoreReport> {
  if (!existsSync(backup)) throw new Error('there is no such file')
  refuseForeignLog(backup)
  createFolder(dirname(store))
  const isNew = !existsSync(store)
  const loss = ' and lose the changes since the backup'
  return replaceFile(store, { ...options, loss }, async partial => {
    const likeness = isNew ? dirname(store) : store
    const report = await copyFor(likeness, backup, partial, options).catch(adviseAnother)
    return { ...report, store, isNew, ...tokenChanges(partial, store) }
  })
}

function adviseAnother(cause: Error & { code?: string }): never {
  const isUseless = isDamage(cause) || cause.code === 'SQLITE_NOTADB'
  throw isUseless ? new Error(`${reasonOf(cause)}: try another backup`, { cause }) : cause
}

/**
 * Refuses a backup with a log beside it that is not its own: SQLite would apply it. The header of a backup says that it
 * has no log.
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

/** Compares the tokens of a backup with those of the store. Both are `undefined` if the store's cannot be read. */
function tokenChanges(backup: string, store: string): Pick<RestoreReport, 'revokedTokens' | 'lostTokens'> {
  const connection = openReadOnly(backup)
  try {
    if (!existsSync(store)) return { revokedTokens: [], lostTokens: [] }
    connection.prepare('attach ? as store').run(store)
    const onlyIn = (database: string, other: string) => {
      const names = connection.prepare(
        `select name from ${database}.${tokensHeld} and hash not in (select hash from ${other}.access_tokens) order by name`,
      )
      return names.pluck().all() as string[]
    }
    return { revokedTokens: onlyIn('main', 'store'), lostTokens: onlyIn('store', 'main') }
  } catch {
    return { revokedTokens: undefined, lostTokens: undefined }
  } finally {
    connection.close()
  }
}

/**
 * Like {@link copyWhole}, with the owner of `likeness`: the replaced file, or the folder of a new store. Also with the
 * mode of a replaced file, but never world-readable.
 */
async function copyFor(
  likeness: string,
  from: string,
  to: string,
  options: CopyOptions,
): Promise<FileReport> {
  const report = await copyWhole(from, to, options)
  const stat = statSync(likeness, { throwIfNoEntry: false })
  try {
    if (stat) chownSync(to, stat.uid, stat.gid)
    if (stat?.isFile()) chmodSync(to, stat.mode & 0o660)
  } catch {
    // Only root may give a file away. The copy stays with this user.
  }
  return report
}

/** Copies a database as of now into a new file, checked, durable and without a log. */
async function copyWhole(from: string, to: string, { onProgress, signal }: CopyOptions): Promise<FileReport> {
  const source = openReadOnly(from)
  try {
    closeSync(openSync(to, 'wx', privateMode))
    // Held until the copy is complete: every change by others would restart it.
    source.exec('begin')
    const { schemaVersion, plants, tokens } = contentsOf(source)
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
    const isWhole =
      report.schemaVersion === schemaVersion && report.plants === plants && report.tokens === tokens
    if (!isWhole) throw new Error('the copy is incomplete')
    return report
  } finally {
    source.close()
  }
}

function contentsOf(connection: Database.Database): Contents {
  const count = (table: string) => Number(connection.prepare(`select count(*) from ${table}`).pluck().get())
  return { schemaVersion: versionOf(connection), plants: count('plants'), tokens: count(tokensHeld) }
}

import { chmodSync, chownSync, closeSync, existsSync, openSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import Database from 'better-sqlite3'
import { NoStoreError, StoreDamagedError, StoreInUseError } from '../errors.ts'
import type { CopyOptions, RestoreReport, StoreReport } from '../storage.ts'
import { followLinks } from '../store-url.ts'
import { closeOnError, isUnreadable, openAloneIfReadable, reasonOf } from './connection.ts'
import {
  createFolder,
  hideFromOthers,
  privateMode,
  refuseForeignWal,
  refuseSecondPath,
  replaceFile,
  syncFile,
} from './files.ts'
import { openReadOnly } from './schema.ts'

/** Checks a store and counts its plants and tokens as of one moment, while others change it. */
export async function inspectSqlite(file: string): Promise<Omit<StoreReport, 'store'>> {
  using source = await openSource(file)
  checkPages(source.connection)
  return { bytes: statSync(file).size, ...source.contents }
}

export async function backUpSqlite(file: string, target: string, options: CopyOptions): Promise<StoreReport> {
  try {
    using source = await openSource(file)
    await replaceFile(target, options, async partial => {
      await copyTo(partial, source, options)
      makeLike(partial, target)
    })
    return { store: target, bytes: statSync(target).size, ...source.contents }
  } catch (cause) {
    throw failure(`the store ${file} could not be backed up to ${target}`, cause)
  }
}

export async function restoreSqlite(
  store: string,
  backup: string,
  options: CopyOptions,
): Promise<RestoreReport> {
  try {
    return await restore(store, followLinks(backup), options)
  } catch (cause) {
    throw failure(`the store ${store} could not be restored from ${backup}`, cause)
  }
}

function failure(what: string, cause: unknown): Error {
  return cause instanceof StoreInUseError ? cause : new Error(`${what}: ${reasonOf(cause)}`, { cause })
}

/** Copies a backup into the store, or in the place of a file that SQLite cannot read. */
async function restore(store: string, backup: string, options: CopyOptions): Promise<RestoreReport> {
  if (!existsSync(backup)) throw new Error('there is no such file')
  createFolder(dirname(store))
  const isNew = !existsSync(store)
  if (!isNew) {
    refuseSecondPath(store)
    refuseForeignWal(store)
  }
  // Before the long check, so that a store in use is refused at once.
  const old = isNew ? undefined : openAloneIfReadable(store)
  using stack = new DisposableStack()
  stack.defer(() => old?.close())
  if (!isNew && !options.force)
    throw new Error(
      `${store} already exists: use --force to replace it and lose the changes since the backup`,
    )
  const source = stack.use(await openBackup(backup))
  const tokens = isNew ? { revokedTokens: [], lostTokens: [] } : tokenChanges(source.connection, old)
  if (old === undefined || !(await copyInto(old, source, options)))
    await replaceFile(store, options, async partial => {
      await copyTo(partial, source, options)
      makeLike(partial, isNew ? dirname(store) : store)
    })
  return { store, bytes: statSync(store).size, ...source.contents, isNew, ...tokens }
}

/**
 * Copies a database into a store, which no other process can open meanwhile, in one transaction of SQLite. Returns
 * false for a store so damaged that nothing can be copied into it.
 *
 * @param old the exclusive connection to the store, which is closed
 */
async function copyInto(old: Database.Database, source: Source, options: CopyOptions): Promise<boolean> {
  const { name: store } = old
  // Without a WAL, the copy keeps others out. With one, it would share the store with a server that starts meanwhile.
  old.exec('rollback')
  old.pragma('journal_mode = delete')
  old.close()
  try {
    await copyPages(store, source, {
      ...options,
      onProgress(done) {
        if (existsSync(`${store}-wal`)) throw new StoreInUseError(store)
        options.onProgress?.(done)
      },
    })
  } catch (error) {
    if (isUnreadable(error)) return false
    throw error
  }
  // A power cut could bring the journal back, which undoes the copy.
  syncFile(store)
  syncFile(dirname(store))
  hideFromOthers(store)
  return true
}

/** Copies a database into a new file, checked and without a WAL. */
async function copyTo(file: string, source: Source, options: CopyOptions): Promise<void> {
  closeSync(openSync(file, 'wx', privateMode))
  await copyPages(file, source, options)
  options.signal?.throwIfAborted()
  const copy = new Database(file)
  copy.pragma('journal_mode = delete')
  copy.close()
  await inspectSqlite(file)
}

/** Sets the owner of a file to that of another file or folder, and the mode to that of a file, never world-readable. */
function makeLike(file: string, other: string): void {
  const stat = statSync(other, { throwIfNoEntry: false })
  try {
    if (stat) chownSync(file, stat.uid, stat.gid)
    if (stat?.isFile()) chmodSync(file, stat.mode & 0o660)
  } catch {
    // Only root may give a file away. The copy stays with this user.
  }
}

/** Pages in one turn of the event loop: a few milliseconds. */
const turnPages = 1_000

/** Copies all pages or none. */
async function copyPages(target: string, source: Source, options: CopyOptions): Promise<void> {
  const { totalPages: copied } = await source.connection.backup(target, {
    progress({ totalPages, remainingPages }) {
      options.signal?.throwIfAborted()
      options.onProgress?.({ pages: totalPages - remainingPages, ofPages: totalPages })
      return turnPages
    },
  })
  // better-sqlite3 takes a target that another process has locked for a copy without pages.
  if (copied === 0) throw new StoreInUseError(target)
}

/** A store or backup as of one moment, whatever others change. */
interface Source extends Disposable {
  readonly connection: Database.Database
  readonly contents: Pick<StoreReport, 'schemaVersion' | 'plants' | 'tokens'>
}

/** Its transaction is held until a copy is complete: otherwise every change by others would restart the copy. */
async function openSource(file: string): Promise<Source> {
  const { connection, schemaVersion } = await openReadOnly(file)
  return closeOnError(connection, () => {
    const count = (table: string) => Number(connection.prepare(`select count(*) from ${table}`).pluck().get())
    const contents = { schemaVersion, plants: count('plants'), tokens: count('access_tokens') }
    return { connection, contents, [Symbol.dispose]: () => connection.close() }
  })
}

async function openBackup(file: string): Promise<Source> {
  try {
    const backup = await openSource(file)
    closeOnError(backup.connection, checkPages)
    return backup
  } catch (cause) {
    if (isUnreadable(cause) || cause instanceof NoStoreError)
      throw new Error(`${reasonOf(cause)}: try another backup`, { cause })
    throw cause
  }
}

function checkPages(connection: Database.Database): void {
  const found = connection.prepare('pragma integrity_check(10)').pluck().all() as string[]
  if (found[0] !== 'ok')
    throw new StoreDamagedError(`it is damaged: ${found.join('; ').replaceAll('\n', ' ')}`)
}

/** Compares the tokens of a backup with those of the store. Both are `undefined` if the store's cannot be read. */
function tokenChanges(
  backup: Database.Database,
  store: Database.Database | undefined,
): Pick<RestoreReport, 'revokedTokens' | 'lostTokens'> {
  try {
    const [kept, old] = [tokensOf(backup), tokensOf(store as Database.Database)]
    return { revokedTokens: namesWithout(kept, old), lostTokens: namesWithout(old, kept) }
  } catch {
    return { revokedTokens: undefined, lostTokens: undefined }
  }
}

/** Returns the names of tokens by hash. */
function tokensOf(connection: Database.Database): ReadonlyMap<string, string> {
  const tokens = connection.prepare<[], [string, string]>(
    'select hash, name from access_tokens order by name',
  )
  return new Map(tokens.raw().all())
}

function namesWithout(tokens: ReadonlyMap<string, string>, others: ReadonlyMap<string, string>): string[] {
  return [...tokens].filter(([hash]) => !others.has(hash)).map(([, name]) => name)
}

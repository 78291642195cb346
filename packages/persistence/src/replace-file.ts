import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  openSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { hostname } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { isDamage } from './outage.ts'
import { StoreInUseError } from './storage.ts'
import { logSuffixes } from './store-url.ts'

interface ReplaceOptions {
  /** Replaces an existing file. */
  readonly force?: boolean
  /** What is lost with an existing file, to say beside `--force`. */
  readonly loss?: string
}

/**
 * Writes a file completely or not at all: beside its target, to disk, and then onto the target in one step. A store
 * that it replaces is locked for that step, and its log removed. Also removes what killed runs left in the folder.
 *
 * @param named the file, or a symbolic link to it
 * @param write makes the file, at a path in the same folder
 * @throws StoreInUseError if a process has the old store open, or Error; the old file is then intact
 */
export async function replaceFile<Result>(
  named: string,
  options: ReplaceOptions,
  write: (partial: string) => Promise<Result>,
): Promise<Result> {
  const file = existsSync(named) ? realpathSync(named) : resolve(named)
  ;(await take(file, named, options))?.[Symbol.dispose]()
  removeLeftovers(dirname(file))

  const partial = join(dirname(file), `.${basename(file)}.${partMark}-${process.pid}-${hostname()}.part`)
  try {
    const result = await write(partial)
    syncFile(partial)
    {
      using store = await take(file, named, options)
      for (const suffix of logSuffixes) rmSync(file + suffix, { force: true })
      renameSync(partial, file)
      // Before the old file is spoiled, as a power cut may undo the rename.
      syncFile(dirname(file))
      store?.spoil()
    }
    return result
  } finally {
    for (const suffix of ['', ...logSuffixes]) rmSync(partial + suffix, { force: true })
  }
}

/** A store without a log that no other process can open until it is disposed of. */
interface TakenStore extends Disposable {
  /**
   * Overwrites the first page of the old store after another file took its name. A process that has opened it meanwhile
   * waits for the lock, and would otherwise write to a file without a name.
   */
  spoil(): void
}

/** Refuses a target that must not be replaced, and locks a store. */
async function take(
  file: string,
  named: string,
  { force = false, loss = '' }: ReplaceOptions,
): Promise<TakenStore | undefined> {
  const store = logSuffixes.map(suffix => file.endsWith(suffix) && file.slice(0, -suffix.length))
  const owner = store.find(each => each && existsSync(each))
  if (owner) throw new Error(`${named} belongs to ${owner}`)

  const stat = lstatSync(file, { throwIfNoEntry: false })
  if (stat?.isSymbolicLink()) throw new Error(`${named} is a dangling link`)
  if (stat?.isDirectory()) throw new Error(`${named} is a folder`)
  if (stat && !stat.isFile()) throw new Error(`${named} is not a file`)
  const found = ['', ...logSuffixes].find(suffix => existsSync(file + suffix))
  if (found !== undefined && !force) {
    if (stat) await refuseUsed(file)
    throw new Error(`${named}${found} already exists: use --force to replace it${loss}`)
  }
  return stat && takeAlone(file)
}

/** @throws StoreInUseError if a process has the store open; ignores other reasons why it cannot be locked */
async function refuseUsed(file: string): Promise<void> {
  try {
    ;(await takeAlone(file))?.[Symbol.dispose]()
  } catch (error) {
    if (error instanceof StoreInUseError) throw error
  }
}

/**
 * Every connection in WAL mode holds a shared lock, so only a single one gets the exclusive lock, and with it removes
 * the log. Returns `undefined` for a file that cannot be read and has no log: a store in use has one.
 */
async function takeAlone(file: string): Promise<TakenStore | undefined> {
  const { default: Database } = await import('better-sqlite3')
  const hasLog = logSuffixes.some(suffix => existsSync(file + suffix))
  const connection = new Database(file, { fileMustExist: true, timeout: 0 })
  try {
    connection.pragma('locking_mode = exclusive')
    connection.pragma('journal_mode = delete')
    connection.exec('begin exclusive')
    // Closed after the connection: closing any descriptor of a file drops the process's locks on it.
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
    const isUnreadable = code === 'SQLITE_NOTADB' || isDamage(cause)
    if (isUnreadable && !hasLog) return undefined
    // Without the cause: it would look like damage of the file that is copied.
    throw new Error(
      `${file} cannot be read (${message}), and a server may be using it: stop the server, move ${file} and its -wal away, and try again`,
    )
  }
}

const partMark = 'plant-store'
const partName = new RegExp(`^\\..+\\.${partMark}-(\\d+)-(.+)\\.part(?:${logSuffixes.join('|')})?$`)

/** Removes files of runs on this machine whose process has ended. */
function removeLeftovers(folder: string): void {
  for (const name of readdirSync(folder)) {
    const [, pid, host] = partName.exec(name) ?? []
    if (host !== hostname() || isAlive(Number(pid))) continue
    try {
      rmSync(join(folder, name))
    } catch {
      // Already removed, or another user's in a folder with the sticky bit.
    }
  }
}

/** This process has not written yet: a file with its number is from an earlier one. */
function isAlive(pid: number): boolean {
  if (pid === process.pid) return false
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}

export function syncFile(path: string): void {
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

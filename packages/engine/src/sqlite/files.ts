import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  closeSync,
  existsSync,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { CopyOptions } from '../storage.ts'
import { filesOf, sideFileSuffixes } from '../store-url.ts'

/**
 * Writes a file completely or not at all: beside its target, to disk, and then onto the target in one step.
 *
 * @param named the file, or a symbolic link to it
 * @param write makes the file, at a path in the same folder
 * @throws StoreInUseError if the target is a store that a process has open, or Error; the old file is then intact
 */
export async function replaceFile<Result>(
  named: string,
  { force = false }: Pick<CopyOptions, 'force'>,
  write: (partial: string) => Promise<Result>,
): Promise<Result> {
  // Imported late: the entry of this package exports this function, and PostgreSQL needs no driver of SQLite.
  const { openAloneIfReadable } = await import('./connection.ts')
  const file = existsSync(named) ? realpathSync(named) : resolve(named)
  refuseTarget(file, named, force)
  removeStalePartials(dirname(file))
  const partial = partialBeside(file)
  using stack = new DisposableStack()
  stack.defer(() => {
    for (const path of filesOf(partial)) rmSync(path, { force: true })
  })
  const result = await write(partial)
  syncFile(partial)
  // Again, as it may have come meanwhile.
  refuseTarget(file, named, force)
  // Keeps other processes out of a store. A file that SQLite cannot read is no store in use.
  const locked = existsSync(file) ? openAloneIfReadable(file) : undefined
  stack.defer(() => locked?.close())
  removeSideFiles(file)
  renameSync(partial, file)
  syncFile(dirname(file))
  return result
}

/** Returns a name in the same folder for a file that is renamed once it is complete. */
export function partialBeside(file: string): string {
  return join(dirname(file), `.plant-store-${randomBytes(6).toString('hex')}.part`)
}

/** A file of {@link partialBeside} that nobody has written to for this time was left by a process that was killed. */
const staleMs = 24 * 3_600_000

function removeStalePartials(folder: string): void {
  try {
    for (const name of readdirSync(folder).filter(each => /^\.plant-store-[\da-f]{12}\.part/.test(each)))
      if (lstatSync(join(folder, name)).mtimeMs < Date.now() - staleMs) rmSync(join(folder, name))
  } catch {
    // It belongs to another user, or another process removed it.
  }
}

function refuseTarget(file: string, named: string, force: boolean): void {
  const stores = sideFileSuffixes.map(suffix => file.endsWith(suffix) && file.slice(0, -suffix.length))
  const owner = stores.find(each => each && existsSync(each))
  if (owner) throw new Error(`${named} belongs to ${owner}`)

  const stat = lstatSync(file, { throwIfNoEntry: false })
  if (stat?.isSymbolicLink()) throw new Error(`${named} is a dangling link`)
  if (stat?.isDirectory()) throw new Error(`${named} is a folder`)
  if (stat && !stat.isFile()) throw new Error(`${named} is not a file`)
  const found = ['', ...sideFileSuffixes].find(suffix => existsSync(file + suffix))
  if (found !== undefined && !force)
    throw new Error(`${named}${found} already exists: use --force to replace it`)
}

/** Durably, as SQLite would apply the WAL of an old file to the new one. */
function removeSideFiles(store: string): void {
  for (const suffix of sideFileSuffixes) rmSync(store + suffix, { force: true })
  syncFile(dirname(store))
}

/**
 * Refuses a store that has another path too. SQLite would keep another WAL beside that, and changes by both paths would
 * overwrite each other.
 */
export function refuseSecondPath(file: string): void {
  const reason = 'SQLite keeps its WAL beside one path only'
  if (hasSecondName(file))
    throw new Error(
      `it has another name, a hard link: remove the name that the server does not use, as ${reason}`,
    )
  if (isMountPoint(file)) throw new Error(`it is mounted alone: mount its folder, as ${reason}`)
}

/** Refuses to read a store whose latest changes may be in a WAL beside another path. A backup has no WAL. */
export function refuseWalElsewhere(file: string): void {
  if ((hasSecondName(file) || isMountPoint(file)) && hasWal(file)) refuseSecondPath(file)
}

function hasSecondName(file: string): boolean {
  return statSync(file).nlink > 1
}

/**
 * Refuses a WAL that is not the file's own: SQLite would apply it.
 */
export function refuseForeignWal(file: string): void {
  const wal = `${file}-wal`
  // Again, as a server may be opening or closing the store.
  if (existsSync(wal) && !hasWal(file) && existsSync(wal))
    throw new Error(`${wal} is the WAL of another store: move it away`)
}

/** Returns false if the header of a file says that it has no WAL, as that of a backup or of a store that was closed does. */
function hasWal(file: string): boolean {
  const header = Buffer.alloc(20)
  readSync(keepOpen(file) as number, header, 0, header.length, 0)
  return header[18] !== 1
}

/** Returns the size of a store in bytes, with its WAL. */
export function sizeOf(file: string): number {
  const sizes = filesOf(file).map(path => statSync(path, { throwIfNoEntry: false })?.size ?? 0)
  return sizes.reduce((sum, size) => sum + size)
}

const keptOpen = new Map<string, number>()

/**
 * Returns a descriptor to read a file, or `undefined` if there is none. It stays open: to close it would take back all
 * locks that this process has on the store.
 */
export function keepOpen(file: string): number | undefined {
  const stat = statSync(file, { throwIfNoEntry: false })
  if (stat === undefined) return undefined
  const key = `${stat.dev}:${stat.ino}`
  const descriptor = keptOpen.get(key) ?? openSync(file, 'r')
  keptOpen.set(key, descriptor)
  return descriptor
}

/** Linux lists them, with special characters in octal. */
function isMountPoint(file: string): boolean {
  const mounts = '/proc/self/mountinfo'
  if (!existsSync(mounts)) return false
  const escaped = file.replaceAll(
    /[ \t\n\\]/g,
    each => `\\${each.charCodeAt(0).toString(8).padStart(3, '0')}`,
  )
  return readFileSync(mounts, 'utf8')
    .split('\n')
    .some(line => line.split(' ')[4] === escaped)
}

/** Only for the server's user, as a store contains hashes of tokens. The WAL gets the same mode. */
export const privateMode = 0o600

/**
 * Creates a private file that belongs to the owner of another file or folder. Of a file it also gets the mode, but is
 * never world-readable. SQLite creates the files beside a store for the store's owner.
 *
 * @throws Error with the code EEXIST, also for a link: the user whose folder it is may have put it there
 */
export function createFileLike(file: string, other: string, text = ''): void {
  const descriptor = openSync(file, 'wx', privateMode)
  writeFileSync(descriptor, text)
  unlessRefused(() => {
    const stat = statSync(other)
    if (isOfAnother(stat, fstatSync(descriptor))) fchownSync(descriptor, stat.uid, stat.gid)
    if (stat.isFile()) fchmodSync(descriptor, stat.mode & 0o660)
  })
  closeSync(descriptor)
}

/** A sandbox may refuse the call for any owner. */
const isOfAnother = (stat: Stats, own: Stats) => stat.uid !== own.uid || stat.gid !== own.gid

function unlessRefused(give: () => void): void {
  try {
    give()
  } catch {
    // Only root may give files away, and not on every file system. Otherwise they stay with this user.
  }
}

/** Closes a store to everybody but its owner and group: it may have been copied to its place. */
export function hideFromOthers(file: string): void {
  for (const path of filesOf(file)) {
    const { mode = 0 } = statSync(path, { throwIfNoEntry: false }) ?? {}
    try {
      if (mode & 0o007) chmodSync(path, mode & 0o770)
    } catch {
      // Only the owner may change the mode, and another user may write.
    }
  }
}

/** Creates a folder durably: a power cut can lose it unless its parent is fsynced. It gets the owner of its parent. */
export function createFolder(folder: string): void {
  if (existsSync(folder)) return
  const parent = dirname(folder)
  createFolder(parent)
  // Not `recursive`: in a folder that refuses it, such as /proc, Node would try forever.
  if (unlessExists(() => mkdirSync(folder)))
    unlessRefused(() => {
      const stat = statSync(parent)
      if (isOfAnother(stat, lstatSync(folder))) lchownSync(folder, stat.uid, stat.gid)
    })
  syncFile(parent)
}

/** Returns whether the work made a file or folder. Another process may have made it before. */
export function unlessExists(create: () => void): boolean {
  try {
    create()
    return true
  } catch (error) {
    if ((error as { code?: string }).code !== 'EEXIST') throw error
    return false
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

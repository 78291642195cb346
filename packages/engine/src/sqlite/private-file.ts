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
  type Stats,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { filesOf } from '../store-url.ts'

/** Only for the server's user, as a store contains hashes of tokens. The WAL gets the same mode. */
export const privateMode = 0o600
const privateFolderMode = 0o700

/**
 * Creates a private file that belongs to the owner of another file or folder. Of a file it also gets the mode, but is
 * never world-readable. SQLite creates the files beside a store for the store's owner.
 *
 * @throws Error with the code EEXIST, also for a link: the user whose folder it is may have put it there
 */
export function createFileLike(file: string, other: string, text = ''): void {
  const descriptor = openSync(file, 'wx', privateMode)
  writeFileSync(descriptor, text)
  tryToGive(() => {
    const stat = statSync(other)
    if (isOfAnother(stat, fstatSync(descriptor))) {
      fchownSync(descriptor, stat.uid, stat.gid)
    }
    if (stat.isFile()) {
      fchmodSync(descriptor, stat.mode & 0o660)
    }
  })
  closeSync(descriptor)
}

/** A sandbox may refuse the call for any owner. */
const isOfAnother = (stat: Stats, own: Stats) =>
  stat.uid !== own.uid || stat.gid !== own.gid

function tryToGive(give: () => void): void {
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
      if (mode & 0o007) {
        chmodSync(path, mode & 0o770)
      }
    } catch {
      // Only the owner may change the mode, and another user may write.
    }
  }
}

/**
 * Creates a folder durably: a power cut can lose it unless its parent is fsynced. It gets
 * the owner of its parent, and nobody else may enter it, whatever the umask.
 */
export function createFolder(folder: string): void {
  if (existsSync(folder)) {
    return
  }
  const parent = dirname(folder)
  createFolder(parent)
  // Not `recursive`: in a folder that refuses it, such as /proc, Node would try forever.
  if (isCreatedBy(() => mkdirSync(folder, privateFolderMode))) {
    tryToGive(() => {
      const stat = statSync(parent)
      if (isOfAnother(stat, lstatSync(folder))) {
        lchownSync(folder, stat.uid, stat.gid)
      }
    })
  }
  syncFile(parent)
}

/** Returns whether the work made a file or folder. Another process may have made it before. */
export function isCreatedBy(create: () => void): boolean {
  try {
    create()
    return true
  } catch (error) {
    if ((error as { code?: string }).code !== 'EEXIST') {
      throw error
    }
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

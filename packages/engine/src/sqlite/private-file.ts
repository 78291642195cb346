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
import { codeOf, tryTo } from '../errors.ts'
import { filesOf } from '../store-url.ts'
import { statIfAny } from './store-path.ts'

/** Only the server's user may read a store, because it has hashes of tokens. */
export const privateMode = 0o600
const privateFolderMode = 0o700

/** The rights that a copy, or a store, keeps: all but those of everybody. */
const keptFileMode = 0o660
const keptStoreMode = 0o770
const everybodysMode = 0o007

/**
 * Creates a private file that belongs to the owner of another file or folder. It also
 * gets the mode of another file, but everybody may never read it. SQLite creates the
 * files beside a store for the owner of the store, in the same way.
 *
 * @throws Error with the code EEXIST, even if the file is a link, which may be that of
 *   the user to whom the folder belongs
 */
export function createFileLike(file: string, other: string, text = '') {
  const descriptor = openSync(file, 'wx', privateMode)
  try {
    writeFileSync(descriptor, text)
    // Only root may give files away, and not on every file system, and only the owner may
    // change a mode. Files then stay as they are.
    tryTo(() => {
      const stat = statSync(other)
      if (isOfAnother(stat, fstatSync(descriptor))) {
        fchownSync(descriptor, stat.uid, stat.gid)
      }
      if (stat.isFile()) {
        fchmodSync(descriptor, stat.mode & keptFileMode)
      }
    })
  } finally {
    closeSync(descriptor)
  }
}

/**
 * A file is given away only if needed, because a sandbox may refuse the call for any
 * owner.
 */
function isOfAnother(stat: Stats, own: Stats) {
  return stat.uid !== own.uid || stat.gid !== own.gid
}

/**
 * Closes a store to everybody but its owner and group. It may have been copied to its
 * place with other rights.
 */
export function hideFromOthers(file: string) {
  for (const path of filesOf(file)) {
    const mode = statIfAny(path)?.mode ?? 0
    const isOpenToAll = (mode & everybodysMode) !== 0
    if (isOpenToAll) {
      tryTo(() => chmodSync(path, mode & keptStoreMode))
    }
  }
}

/**
 * Creates a folder durably: a power cut can lose it unless its parent is fsynced. It gets
 * the owner of its parent, and nobody else may enter it, whatever the umask.
 */
export function createFolder(folder: string) {
  if (existsSync(folder)) {
    return
  }
  const parent = dirname(folder)
  createFolder(parent)

  // The option `recursive` would let Node try forever in a folder that refuses it, such
  // as /proc.
  const isNew = isCreatedBy(() => mkdirSync(folder, privateFolderMode))
  if (isNew) {
    tryTo(() => {
      const stat = statSync(parent)
      if (isOfAnother(stat, lstatSync(folder))) {
        lchownSync(folder, stat.uid, stat.gid)
      }
    })
  }
  syncFolder(parent)
}

/**
 * Returns whether the work created a file or folder. Another process may have created it
 * before.
 */
export function isCreatedBy(create: () => void) {
  try {
    create()
    return true
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') {
      throw error
    }
    return false
  }
}

const isWindows = process.platform === 'win32'

/** Waits until a file is on disk. */
export function syncFile(file: string) {
  // Windows refuses this for what is open only for reading.
  sync(file, isWindows ? 'r+' : 'r')
}

/** Waits until the names in a folder are on disk. Windows has no call for that. */
export function syncFolder(folder: string) {
  if (!isWindows) {
    sync(folder, 'r')
  }
}

function sync(path: string, flags: string) {
  const descriptor = openSync(path, flags)
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

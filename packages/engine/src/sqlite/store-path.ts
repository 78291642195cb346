import {
  existsSync,
  fstatSync,
  openSync,
  readFileSync,
  type Stats,
  statSync,
} from 'node:fs'
import { readHeader } from './store-header.ts'

/**
 * Descriptors by the device and inode of their file. They stay open until the process
 * ends.
 */
const keptOpen = new Map<string, number>()

/** Returns what a path leads to, or `undefined` if there is nothing. */
export function statIfAny(path: string) {
  return statSync(path, { throwIfNoEntry: false })
}

/**
 * Returns whether there is a file. Opening a pipe would wait forever, and a folder has
 * more than one link.
 *
 * @throws Error if there is something else
 */
export function isFile(path: string) {
  const stat = statIfAny(path)
  requireFile(stat, path)
  return stat !== undefined
}

/** @throws Error if something is there that is no file */
export function requireFile(stat: Stats | undefined, path: string) {
  if (stat?.isDirectory()) {
    throw new Error(`${path} is a folder`)
  }
  if (stat?.isFile() === false) {
    throw new Error(`${path} is not a file`)
  }
}

/**
 * Refuses a store that has another path, too. SQLite would keep another WAL beside that
 * path, and changes by both paths would overwrite each other.
 */
export function refuseSecondPath(file: string) {
  const reason = 'SQLite keeps its WAL beside one path only'
  if (hasSecondName(file)) {
    throw new Error(
      `it has another name, a hard link: remove the name that the server does not use, as ${reason}`,
    )
  }
  if (isMountPoint(file)) {
    throw new Error(`it is mounted alone: mount its folder, as ${reason}`)
  }
}

/**
 * Refuses to read a store whose latest changes may be in a WAL beside another path. A
 * backup has no WAL, so it may have several paths.
 */
export function refuseWalElsewhere(file: string) {
  const hasSecondPath = hasSecondName(file) || isMountPoint(file)
  if (hasSecondPath && hasWal(file)) {
    refuseSecondPath(file)
  }
}

/**
 * Refuses a WAL that belongs to another store, because SQLite would apply it. It would
 * remove one whose store is gone, or an empty file, with the latest changes.
 */
export function refuseForeignWal(file: string) {
  const wal = `${file}-wal`
  if (!existsSync(wal) || hasWal(file)) {
    return
  }
  // A server that closes the store may have removed the WAL in the meantime.
  if (existsSync(wal)) {
    throw new Error(`${wal} is the WAL of another store: move it away`)
  }
}

/**
 * Returns a descriptor to read a file, or `undefined` if there is none. It stays open,
 * because closing it would drop all locks that this process has on the store.
 */
export function keepOpen(file: string) {
  const stat = statIfAny(file)
  if (stat === undefined) {
    return
  }

  const key = `${stat.dev}:${stat.ino}`
  const descriptor = keptOpen.get(key) ?? openSync(file, 'r')
  keptOpen.set(key, descriptor)
  return descriptor
}

function hasSecondName(file: string) {
  return statSync(file).nlink > 1
}

/** The header of a backup, and of a store that was closed, says that it has no WAL. */
function hasWal(file: string) {
  const descriptor = keepOpen(file)
  const isEmpty = descriptor === undefined || fstatSync(descriptor).size === 0
  return !isEmpty && readHeader(descriptor).writeVersion !== 1
}

/** Linux lists mount points, with special characters in octal. */
function isMountPoint(file: string) {
  const mounts = '/proc/self/mountinfo'
  if (!existsSync(mounts)) {
    return false
  }

  const escaped = file.replaceAll(/[ \t\n\\]/g, character => {
    const octal = character.charCodeAt(0).toString(8)
    return `\\${octal.padStart(3, '0')}`
  })
  const lines = readFileSync(mounts, 'utf8').split('\n')
  const mountPoints = lines.map(line => line.split(' ')[4])
  return mountPoints.includes(escaped)
}

import { existsSync, openSync, readFileSync, readSync, statSync } from 'node:fs'

/**
 * Refuses a store that has another path too. SQLite would keep another WAL beside that, and changes by both paths would
 * overwrite each other.
 */
export function refuseSecondPath(file: string): void {
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

/** Refuses to read a store whose latest changes may be in a WAL beside another path. A backup has no WAL. */
export function refuseWalElsewhere(file: string): void {
  if ((hasSecondName(file) || isMountPoint(file)) && hasWal(file)) {
    refuseSecondPath(file)
  }
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
  if (existsSync(wal) && !hasWal(file) && existsSync(wal)) {
    throw new Error(`${wal} is the WAL of another store: move it away`)
  }
}

/** Returns false if the header of a file says that it has no WAL, as that of a backup or of a store that was closed does. */
function hasWal(file: string): boolean {
  const header = Buffer.alloc(20)
  readSync(keepOpen(file) as number, header, 0, header.length, 0)
  return header[18] !== 1
}

const keptOpen = new Map<string, number>()

/**
 * Returns a descriptor to read a file, or `undefined` if there is none. It stays open: to close it would take back all
 * locks that this process has on the store.
 */
export function keepOpen(file: string): number | undefined {
  const stat = statSync(file, { throwIfNoEntry: false })
  if (stat === undefined) {
    return undefined
  }
  const key = `${stat.dev}:${stat.ino}`
  const descriptor = keptOpen.get(key) ?? openSync(file, 'r')
  keptOpen.set(key, descriptor)
  return descriptor
}

/** Linux lists them, with special characters in octal. */
function isMountPoint(file: string): boolean {
  const mounts = '/proc/self/mountinfo'
  if (!existsSync(mounts)) {
    return false
  }
  const escaped = file.replaceAll(
    /[ \t\n\\]/g,
    each => `\\${each.charCodeAt(0).toString(8).padStart(3, '0')}`,
  )
  return readFileSync(mounts, 'utf8')
    .split('\n')
    .some(line => line.split(' ')[4] === escaped)
}

import { randomBytes } from 'node:crypto'
import {
  closeSync,
  existsSync,
  linkSync,
  lstatSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { codeOf, tryTo } from '../errors.ts'
import { filesOf, sideFileSuffixes } from '../store-url.ts'
import type { CopyOptions } from './backup.ts'
import { isCreatedBy, privateMode, syncFile, syncFolder } from './private-file.ts'
import { requireFile } from './store-path.ts'

/** The names that {@link partialBeside} gives. SQLite's suffixes may follow. */
const partialPattern = /^\.plant-store-[\da-f]{12}\.part/

/**
 * A partial file that was not written for this time was left by a process that was
 * killed.
 */
const staleMs = 24 * 3_600_000

/**
 * Writes a file completely or not at all: beside its target, to the disk, and then onto
 * the target in one step.
 *
 * A symbolic link is refused, because in a shared folder another user may have put it
 * there.
 *
 * @param write creates the file, at a path in the same folder
 * @throws StoreInUseError if the target is a store that a process has open, or Error. The
 *   old file is then intact
 */
export async function replaceFile(
  named: string,
  { force = false }: Pick<CopyOptions, 'force'>,
  write: (partial: string) => Promise<void>,
) {
  // It is imported late, because the entry of this package exports this function, and
  // PostgreSQL needs no driver of SQLite.
  const { openExclusively } = await import('./connection.ts')
  const file = resolve(named)
  refuseTarget(file, named, force)
  removeStalePartials(dirname(file))

  const partial = partialBeside(file)
  using stack = new DisposableStack()
  stack.defer(() => removeAll(filesOf(partial)))
  await write(partial)
  syncFile(partial)

  // A file may have come to the target in the meantime.
  refuseTarget(file, named, force)
  if (force && existsSync(file)) {
    // The lock keeps other processes out of a store. A file that SQLite cannot read is no
    // store in use.
    const locked = openExclusively(file)
    stack.defer(() => locked?.close())
  }
  if (force) {
    // They are removed durably before, because SQLite would apply the WAL of the old file
    // to the new one.
    removeAll(sideFileSuffixes.map(suffix => file + suffix))
    syncFolder(dirname(file))
    renameSync(partial, file)
  } else if (!isCreatedBy(() => nameAsNew(partial, file))) {
    throw alreadyExists(named)
  }
  removeAll([partial])
  syncFolder(dirname(file))
}

/**
 * Gives a complete file its name. Of several processes that do so at once, one succeeds.
 *
 * @throws Error with the code EEXIST if the name is taken
 */
function nameAsNew(partial: string, file: string) {
  try {
    linkSync(partial, file)
  } catch (error) {
    if (codeOf(error) === 'EEXIST') {
      throw error
    }
    // Some file systems, such as FAT, have no second names. There a power cut at this
    // moment leaves an empty file.
    closeSync(openSync(file, 'wx', privateMode))
    renameSync(partial, file)
  }
}

function alreadyExists(path: string) {
  return new Error(`${path} already exists: use --force to replace it`)
}

/** Returns a name in the same folder for a file that is renamed once it is complete. */
export function partialBeside(file: string) {
  return join(dirname(file), `.plant-store-${randomBytes(6).toString('hex')}.part`)
}

function removeAll(paths: readonly string[]) {
  for (const path of paths) {
    rmSync(path, { force: true })
  }
}

function removeStalePartials(folder: string) {
  const oldestMs = Date.now() - staleMs
  // A file may belong to another user, or another process has removed it.
  tryTo(() => {
    for (const name of readdirSync(folder)) {
      const path = join(folder, name)
      if (partialPattern.test(name) && lstatSync(path).mtimeMs < oldestMs) {
        rmSync(path)
      }
    }
  })
}

function refuseTarget(file: string, named: string, force: boolean) {
  if (named.endsWith('/')) {
    throw new Error(`${named} is a folder`)
  }

  // Beside a store, these names are those of its own files.
  const suffix = sideFileSuffixes.find(each => file.endsWith(each)) ?? ''
  const store = file.slice(0, file.length - suffix.length)
  if (suffix !== '' && existsSync(store)) {
    throw new Error(`${named} belongs to ${store}`)
  }

  const stat = lstatSync(file, { throwIfNoEntry: false })
  if (stat?.isSymbolicLink()) {
    throw new Error(`${named} is a link: name the file that it leads to`)
  }
  requireFile(stat, named)

  const present = ['', ...sideFileSuffixes].find(suffix => existsSync(file + suffix))
  if (present !== undefined && !force) {
    throw alreadyExists(`${named}${present}`)
  }
}

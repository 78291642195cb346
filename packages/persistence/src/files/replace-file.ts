import { randomBytes } from 'node:crypto'
import {
  closeSync,
  existsSync,
  fsyncSync,
  lstatSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { logSuffixes } from '../store-url.ts'

/**
 * Writes a file completely or not at all: beside its target, to disk, and then onto the target in one step.
 *
 * @param named the file, or a symbolic link to it
 * @param write makes the file, at a path in the same folder
 * @throws StoreInUseError if the target is a store that a process has open, or Error; the old file is then intact
 */
export async function replaceFile<Result>(
  named: string,
  { force = false }: { readonly force?: boolean | undefined },
  write: (partial: string) => Promise<Result>,
): Promise<Result> {
  const file = existsSync(named) ? realpathSync(named) : resolve(named)
  refuseTarget(file, named, force)
  const partial = join(dirname(file), `.plant-store-${randomBytes(6).toString('hex')}.part`)
  try {
    const result = await write(partial)
    syncFile(partial)
    // Again, as it may have come meanwhile.
    refuseTarget(file, named, force)
    using _locked = existsSync(file) ? await lock(file) : undefined
    removeLog(file)
    renameSync(partial, file)
    syncFile(dirname(file))
    return result
  } finally {
    for (const suffix of ['', ...logSuffixes]) rmSync(partial + suffix, { force: true })
  }
}

/** Keeps other processes out of a store. A file that SQLite cannot read is no store in use. */
async function lock(file: string): Promise<Disposable> {
  const { openAloneIfReadable } = await import('../sqlite/connection.ts')
  const connection = openAloneIfReadable(file)
  return { [Symbol.dispose]: () => connection?.close() }
}

function refuseTarget(file: string, named: string, force: boolean): void {
  const store = logSuffixes.map(suffix => file.endsWith(suffix) && file.slice(0, -suffix.length))
  const owner = store.find(each => each && existsSync(each))
  if (owner) throw new Error(`${named} belongs to ${owner}`)

  const stat = lstatSync(file, { throwIfNoEntry: false })
  if (stat?.isSymbolicLink()) throw new Error(`${named} is a dangling link`)
  if (stat?.isDirectory()) throw new Error(`${named} is a folder`)
  if (stat && !stat.isFile()) throw new Error(`${named} is not a file`)
  const found = ['', ...logSuffixes].find(suffix => existsSync(file + suffix))
  if (found !== undefined && !force)
    throw new Error(`${named}${found} already exists: use --force to replace it`)
}

/** Durably, as SQLite would apply the log of an old file to the new one. */
function removeLog(store: string): void {
  for (const suffix of logSuffixes) rmSync(store + suffix, { force: true })
  syncFile(dirname(store))
}

export function syncFile(path: string): void {
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

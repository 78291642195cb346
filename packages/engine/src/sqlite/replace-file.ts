import { randomBytes } from 'node:crypto'
import { existsSync, lstatSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { filesOf, sideFileSuffixes } from '../store-url.ts'
import type { CopyOptions } from '../types.ts'
import { syncFile } from './private-file.ts'

/**
 * Writes a file completely or not at all: beside its target, to disk, and then onto the target in one step.
 *
 * A symbolic link is refused, because in a shared folder another user may have put it there.
 *
 * @param write makes the file, at a path in the same folder
 * @throws StoreInUseError if the target is a store that a process has open, or Error; the old file is then intact
 */
export async function replaceFile<Result>(
  named: string,
  { force = false }: Pick<CopyOptions, 'force'>,
  write: (partial: string) => Promise<Result>,
): Promise<Result> {
  // Imported late: the entry of this package exports this function, and PostgreSQL needs no driver of SQLite.
  const { openExclusively } = await import('./connection.ts')
  const file = resolve(named)
  refuseTarget(file, named, force)
  removeStalePartials(dirname(file))
  const partial = partialBeside(file)
  using stack = new DisposableStack()
  stack.defer(() => {
    for (const path of filesOf(partial)) {
      rmSync(path, { force: true })
    }
  })
  const result = await write(partial)
  syncFile(partial)
  // Again, as it may have come meanwhile.
  refuseTarget(file, named, force)
  // Keeps other processes out of a store. A file that SQLite cannot read is no store in use.
  const locked = existsSync(file) ? openExclusively(file) : undefined
  stack.defer(() => locked?.close())
  // Durably before, as SQLite would apply the WAL of the old file to the new one.
  for (const suffix of sideFileSuffixes) {
    rmSync(file + suffix, { force: true })
  }
  syncFile(dirname(file))
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
    for (const name of readdirSync(folder).filter(each =>
      /^\.plant-store-[\da-f]{12}\.part/.test(each),
    )) {
      if (lstatSync(join(folder, name)).mtimeMs < Date.now() - staleMs) {
        rmSync(join(folder, name))
      }
    }
  } catch {
    // It belongs to another user, or another process removed it.
  }
}

function refuseTarget(file: string, named: string, force: boolean): void {
  const stores = sideFileSuffixes.map(
    suffix => file.endsWith(suffix) && file.slice(0, -suffix.length),
  )
  const owner = stores.find(each => each && existsSync(each))
  if (owner) {
    throw new Error(`${named} belongs to ${owner}`)
  }

  const stat = lstatSync(file, { throwIfNoEntry: false })
  if (stat?.isSymbolicLink()) {
    throw new Error(`${named} is a link: name the file that it leads to`)
  }
  if (stat?.isDirectory()) {
    throw new Error(`${named} is a folder`)
  }
  if (stat && !stat.isFile()) {
    throw new Error(`${named} is not a file`)
  }
  const found = ['', ...sideFileSuffixes].find(suffix => existsSync(file + suffix))
  if (found !== undefined && !force) {
    throw new Error(`${named}${found} already exists: use --force to replace it`)
  }
}

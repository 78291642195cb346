import {
  closeSync,
  existsSync,
  fsyncSync,
  lstatSync,
  openSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { hostname } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'

/** What SQLite keeps beside a store: whatever opens the store takes it for the store's own. */
export const logSuffixes = ['-wal', '-shm', '-journal'] as const

/**
 * Writes a file whole or not at all: beside its place, to the disk, and then into its place in one step. A store that
 * it replaces is taken exclusively for that step, and its log goes with it. What killed runs left in the folder is
 * removed.
 *
 * @param named the file; behind a symbolic link, what the link leads to is replaced
 * @param force replaces what is there
 * @param write makes the file, at a path in the same folder
 * @throws StoreInUseError when a process has the store open that would be replaced, or Error; what was there is then still there
 */
export async function replaceFile<Result>(
  named: string,
  { force = false }: { readonly force?: boolean },
  write: (partial: string) => Promise<Result>,
): Promise<Result> {
  const file = existsSync(named) ? realpathSync(named) : resolve(named)
  ;(await take(file, named, force))?.[Symbol.dispose]()
  removeLeftovers(dirname(file))

  const partial = join(dirname(file), `.${basename(file)}.${partMark}-${process.pid}-${hostname()}.part`)
  try {
    const result = await write(partial)
    syncFile(partial)
    {
      using store = await take(file, named, force)
      for (const suffix of logSuffixes) rmSync(file + suffix, { force: true })
      renameSync(partial, file)
      // Before it is spoiled: a power cut may undo the rename.
      syncFile(dirname(file))
      store?.spoil()
    }
    return result
  } finally {
    for (const suffix of ['', ...logSuffixes]) rmSync(partial + suffix, { force: true })
  }
}

/** Whatever may be replaced is taken, so that nobody opens it meanwhile. */
async function take(file: string, named: string, force: boolean) {
  const store = logSuffixes.map(suffix => file.endsWith(suffix) && file.slice(0, -suffix.length))
  const owner = store.find(each => each && existsSync(each))
  if (owner) throw new Error(`${named} belongs to ${owner}`)

  const stat = lstatSync(file, { throwIfNoEntry: false })
  if (stat?.isSymbolicLink()) throw new Error(`${named} is a link to nothing`)
  if (stat?.isDirectory()) throw new Error(`${named} is a folder`)
  if (stat && !stat.isFile()) throw new Error(`${named} is not a file`)
  const found = ['', ...logSuffixes].find(suffix => existsSync(file + suffix))
  if (found !== undefined && !force) throw new Error(`${named}${found} is already there: --force replaces it`)
  return stat && (await import('./sqlite/take-alone.ts')).takeAlone(file)
}

const partMark = 'plant-store'
const partName = new RegExp(`^\\..+\\.${partMark}-(\\d+)-(.+)\\.part(?:${logSuffixes.join('|')})?$`)

/** Of runs on this machine whose process is gone. */
function removeLeftovers(folder: string): void {
  for (const name of readdirSync(folder)) {
    const [, pid, host] = partName.exec(name) ?? []
    if (host !== hostname() || isAlive(Number(pid))) continue
    try {
      rmSync(join(folder, name), { force: true })
    } catch {
      // Another user's, in a folder where each may remove their own only.
    }
  }
}

/** This process has written nothing yet: what has its number is of an earlier one. */
function isAlive(pid: number): boolean {
  if (pid === process.pid) return false
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}

function syncFile(file: string): void {
  const descriptor = openSync(file, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

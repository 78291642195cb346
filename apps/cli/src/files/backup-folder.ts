import { randomBytes } from 'node:crypto'
import { readdirSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { readStoreId } from '@plant-store/engine'
import { CommandError, withFile } from '../command-error.ts'
import { statOf } from './output-file.ts'

/**
 * The time and the suffix in the name of a backup. Earlier releases wrote no random part.
 */
const namePattern = /-\d{4}-\d\d-\d\dT\d{6}Z(?:-[\da-f]{8})?\.backup$/

/**
 * Returns the path of a backup of now in a folder. It is named after its store and the
 * time. A random part tells it from those that other processes make in the same second,
 * perhaps of a store of the same name.
 *
 * @throws CommandError if the folder is a file
 */
export function nextBackup(folder: string, store: string): string {
  if (statOf(folder)?.isFile()) {
    throw new CommandError(`${folder} is a file: --keep takes a folder`)
  }
  const time = new Date().toISOString().replaceAll(/:|\.\d+/g, '')
  const random = randomBytes(4).toString('hex')
  return join(folder, `${basename(store)}-${time}-${random}.backup`)
}

/**
 * Removes the older backups of a store from a folder. Its newest stay, and `made` among
 * them. Stores are told apart by their id, because several may have one name.
 *
 * Several processes may do this at once. They keep the same backups, because all put them
 * into the same order.
 *
 * @param made the path of the backup that was just made
 * @returns how many it removed
 */
export function removeOldBackups(
  folder: string,
  { made, storeId, keep }: { made: string; storeId: number; keep: number },
): number {
  const names = withFile(folder, () => readdirSync(folder))
  const backups = names.filter(
    name => namePattern.test(name) && readStoreId(join(folder, name)) === storeId,
  )
  // The clock may have been set back, so `made` need not be the newest by name.
  const oldBackups = backups
    .sort((one, other) => (timeIn(one) < timeIn(other) ? 1 : -1))
    .slice(keep)
    .filter(name => name !== basename(made))
  for (const name of oldBackups) {
    withFile(name, () => rmSync(join(folder, name), { force: true }))
  }
  return oldBackups.length
}

/** Returns the end of a name, which sorts by time, whatever the store was called. */
function timeIn(name: string) {
  return name.slice(name.search(namePattern))
}

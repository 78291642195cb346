import { mkdirSync, readdirSync, rmSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { readStoreId } from '@plant-store/engine'
import { CommandError, withFile } from '../command-error.ts'

/** A folder of backups, perhaps of several stores. */
export interface BackupFolder {
  /** The path of a backup of now. */
  readonly next: string
  /**
   * Removes the older backups of the store that `next` is a backup of. Its newest stay,
   * and `next` among them.
   *
   * @returns how many it removed
   */
  keepNewest(count: number): number
}

const namePattern = /-\d{4}-\d\d-\d\dT\d{6}Z\.backup$/

/**
 * Returns a folder of backups, which it creates if needed. A backup is named after its
 * store and the time. Stores are told apart by the id inside, because several may have
 * one name.
 */
export function backupFolder(folder: string, store: string): BackupFolder {
  const stat = withFile(folder, () => statSync(folder, { throwIfNoEntry: false }))
  if (stat?.isFile()) {
    throw new CommandError(`${folder} is a file: --keep takes a folder`)
  }
  withFile(folder, () => mkdirSync(folder, { recursive: true, mode: 0o700 }))

  const time = new Date().toISOString().replace(/\.\d+/, '').replaceAll(':', '')
  const nextName = `${basename(store)}-${time}.backup`
  const next = join(folder, nextName)

  return {
    next,
    keepNewest(count) {
      const storeId = readStoreId(next)
      if (storeId === undefined) {
        return 0
      }
      // The clock may have been set back, so `next` is not among those to choose from.
      const names = withFile(folder, () => readdirSync(folder))
      const otherBackups = names.filter(
        name =>
          namePattern.test(name) &&
          name !== nextName &&
          readStoreId(join(folder, name)) === storeId,
      )
      const oldBackups = otherBackups.sort(compareTimes).slice(count - 1)
      for (const name of oldBackups) {
        withFile(name, () => rmSync(join(folder, name)))
      }
      return oldBackups.length
    },
  }
}

/** Sorts the newest first, whatever the store was called. */
function compareTimes(one: string, other: string): number {
  const oneTime = namePattern.exec(one)?.[0] ?? ''
  const otherTime = namePattern.exec(other)?.[0] ?? ''
  return oneTime < otherTime ? 1 : -1
}

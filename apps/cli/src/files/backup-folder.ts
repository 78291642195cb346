import { mkdirSync, readdirSync, rmSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { CommandError, withFile } from '../command-error.ts'

/**
 * Returns a folder of backups, which it creates if needed. A backup is named after its store and the time, so that the
 * names are in order of time.
 */
export function backupFolder(folder: string, store: string) {
  const prefix = `${basename(store)}-`
  const time = new Date().toISOString().replace(/\.\d+/, '').replaceAll(':', '')
  const next = `${prefix}${time}.backup`
  const isBackup = (name: string) =>
    name.startsWith(prefix) &&
    /^\d{4}-\d\d-\d\dT\d{6}Z\.backup$/.test(name.slice(prefix.length))
  if (withFile(folder, () => statSync(folder, { throwIfNoEntry: false }))?.isFile()) {
    throw new CommandError(`${folder} is a file: --keep takes a folder`)
  }
  withFile(folder, () => mkdirSync(folder, { recursive: true, mode: 0o700 }))
  return {
    /** The path of a backup of now. */
    next: join(folder, next),
    /** Removes all backups but this one and the newest others. Returns how many it removed. */
    keepNewest(count: number): number {
      // Should the clock have been set back, this one must still stay.
      const others = withFile(folder, () => readdirSync(folder)).filter(
        name => isBackup(name) && name !== next,
      )
      const old = others
        .sort()
        .reverse()
        .slice(count - 1)
      for (const name of old) {
        withFile(name, () => rmSync(join(folder, name)))
      }
      return old.length
    },
  }
}

import { readFileSync, realpathSync, renameSync, rmSync } from 'node:fs'
import { createFileLike, partialBeside } from './files.ts'

/**
 * Beside the store, with the time of its last backup. In the store it would be in every backup, and a restore would bring
 * back a time that says nothing about the store.
 */
const suffix = '.last-backup'

/** @param at as of when the backup is */
export function recordBackup(store: string, at: Date): void {
  const file = realpathSync(store) + suffix
  const partial = partialBeside(file)
  try {
    createFileLike(partial, store, `${at.toISOString()}\n`)
    renameSync(partial, file)
  } finally {
    rmSync(partial, { force: true })
  }
}

/** @param store the full path of one that is created or restored where there was another */
export function forgetBackup(store: string): void {
  rmSync(store + suffix, { force: true })
}

/** Returns as of when the last backup is, or `null` if none is recorded. */
export function readLastBackup(store: string): Date | null {
  try {
    const at = new Date(readFileSync(realpathSync(store) + suffix, 'utf8').trim())
    return Number.isNaN(at.getTime()) ? null : at
  } catch {
    return null
  }
}

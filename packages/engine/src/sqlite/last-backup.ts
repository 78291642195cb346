import { readFileSync, realpathSync, renameSync, rmSync } from 'node:fs'
import { parseStoreUrl } from '../store-url.ts'
import { createFileLike } from './private-file.ts'
import { partialBeside } from './replace-file.ts'

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

/** Resolves to when the last backup of a file began, `null` if none is recorded, and `undefined` for a database. */
export async function readLastBackup(url: string): Promise<Date | null | undefined> {
  const location = parseStoreUrl(url)
  if (location.kind !== 'file') {
    return undefined
  }
  try {
    const at = new Date(readFileSync(realpathSync(location.file) + suffix, 'utf8').trim())
    return Number.isNaN(at.getTime()) ? null : at
  } catch {
    return null
  }
}

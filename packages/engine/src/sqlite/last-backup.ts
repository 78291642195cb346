import { readFileSync, realpathSync, renameSync, rmSync } from 'node:fs'
import { codeOf, reasonOf } from '../errors.ts'
import { parseStoreUrl } from '../store-url.ts'
import { createFileLike } from './private-file.ts'
import { partialBeside } from './replace-file.ts'

/**
 * The suffix of a file beside the store with the time of its last backup. In the store,
 * the time would be in every backup, and a restore would bring back a wrong one.
 */
const suffix = '.last-backup'

/**
 * Records the time of a backup. Returns why that failed, or `undefined`.
 *
 * @param at the moment whose state the backup has
 */
export function recordBackup(store: string, at: Date) {
  try {
    using stack = new DisposableStack()
    const file = realpathSync(store) + suffix
    const partial = partialBeside(file)
    stack.defer(() => rmSync(partial, { force: true }))
    createFileLike(partial, store, `${at.toISOString()}\n`)
    renameSync(partial, file)
    return
  } catch (error) {
    return reasonOf(error)
  }
}

/**
 * @param store the full path of a store that is new, or restored in the place of another
 */
export function forgetBackup(store: string) {
  rmSync(store + suffix, { force: true })
}

/**
 * Resolves to when the last backup of a file began, to `null` if none is recorded, and to
 * `undefined` for a database on a server.
 *
 * @throws Error if the file with the time cannot be read
 */
export async function readLastBackup(url: string): Promise<Date | null | undefined> {
  const location = parseStoreUrl(url)
  if (location.kind !== 'file') {
    return undefined
  }
  try {
    const text = readFileSync(realpathSync(location.file) + suffix, 'utf8')
    const at = new Date(text.trim())
    return Number.isNaN(at.getTime()) ? null : at
  } catch (cause) {
    if (codeOf(cause) === 'ENOENT') {
      return null
    }
    const message = `the time of the last backup cannot be read: ${reasonOf(cause)}`
    throw new Error(message, { cause })
  }
}

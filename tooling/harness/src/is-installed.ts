import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'

const ending = process.platform === 'win32' ? '.exe' : ''

/**
 * Returns whether this machine has a program. It is not run, because some create a folder
 * in the user's home as soon as they start.
 */
export function isInstalled(program: string): boolean {
  const folders = (process.env['PATH'] ?? '').split(delimiter)
  return folders.some(folder => existsSync(join(folder, `${program}${ending}`)))
}

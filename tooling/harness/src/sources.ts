import { execFile } from 'node:child_process'
import { cpSync, type DisposableTempDir, symlinkSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { temporaryFolder } from './temporary-folder.ts'

const root = join(import.meta.dirname, '../../..')
const rootModules = join(root, 'node_modules')
const leftOut = new Set(['.bin', '.cache', '.git', '.turbo', 'coverage', 'data'])

/** Copies the workspace, installed and built, into a folder that can be changed. */
export function copySources(): DisposableTempDir {
  const copy = temporaryFolder()
  cpSync(root, copy.path, {
    recursive: true,
    // pnpm links packages by relative paths, which lead to the copies then.
    verbatimSymlinks: true,
    filter: path => path !== rootModules && !leftOut.has(basename(path)),
  })
  symlinkSync(rootModules, join(copy.path, 'node_modules'))
  return copy
}

/** @throws Error if the patch does not apply, with its name */
export async function applyPatch(folder: string, patch: string): Promise<void> {
  // The copy may be inside a repository, in which git must not look for its files.
  const env = { ...process.env, GIT_CEILING_DIRECTORIES: dirname(folder) }
  await promisify(execFile)('git', ['apply', patch], { cwd: folder, env })
}

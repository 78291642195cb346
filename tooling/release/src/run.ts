import { execFile, execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** Runs a program while others run. Rejects with what it printed if it fails. */
export const start = promisify(execFile)

/** Returns the standard output of a program. */
export function run(program: string, ...args: readonly string[]): string {
  return runIn('.', program, ...args)
}

/** Returns the standard output of a program that runs in a folder. */
export function runIn(
  folder: string,
  program: string,
  ...args: readonly string[]
): string {
  const maxBuffer = Number.POSITIVE_INFINITY
  // Without `stdio`, which would keep the standard error out of the error.
  return execFileSync(program, args, { cwd: folder, encoding: 'utf8', maxBuffer })
}

const { npm_execpath: pnpm = 'pnpm' } = process.env
/** The pnpm that started this process, a program or a script. */
export const pnpmCommand: readonly [string, ...string[]] = /\.[cm]?js$/.test(pnpm)
  ? [process.execPath, pnpm]
  : [pnpm]

export const readManifest = (folder: string) =>
  JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))

/**
 * Writes a tar archive of what is in a folder, compressed if its name says so. Owners and
 * times are fixed, so that the same files make the same bytes.
 */
export function writeTar(
  archive: string,
  from: string,
  paths: readonly string[],
  uid = 0,
): void {
  const same = ['--sort=name', '--mtime=2000-01-01 00:00Z', '--mode=u=rwX,go=rX']
  const owner = [`--owner=:${uid}`, `--group=:${uid}`, '--numeric-owner']
  const file = ['--format=ustar', '--auto-compress', '--file', archive, '-C', from]
  run('tar', '--create', ...same, ...owner, ...file, ...paths)
}

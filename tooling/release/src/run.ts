import { execFile, execFileSync } from 'node:child_process'
import { promisify } from 'node:util'

/** Runs a program while others run. Rejects with what it printed if it fails. */
export const start = promisify(execFile)

/**
 * Returns the standard output of a program. Its standard error is shown, and is in the
 * error if it fails.
 */
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

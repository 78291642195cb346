import { execFileSync } from 'node:child_process'

/** Returns the standard output of a program. Its standard error is shown. */
export function run(program: string, ...args: readonly string[]): string {
  return execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
}

/** Runs the pnpm that started this process, a program or a script. */
export function runPnpm(...args: readonly string[]): string {
  const { npm_execpath: pnpm = 'pnpm' } = process.env
  return /\.[cm]?js$/.test(pnpm) ? run(process.execPath, pnpm, ...args) : run(pnpm, ...args)
}

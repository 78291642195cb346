import { execFileSync } from 'node:child_process'

/** Returns what the program wrote to standard output. Its standard error is shown. */
export function run(program: string, ...args: readonly string[]): string {
  return execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
}

/** Runs the pnpm that runs this. It is a program or a script, depending on how it was installed. */
export function runPnpm(...args: readonly string[]): string {
  const { npm_execpath: pnpm = 'pnpm' } = process.env
  return /\.[cm]?js$/.test(pnpm) ? run(process.execPath, pnpm, ...args) : run(pnpm, ...args)
}

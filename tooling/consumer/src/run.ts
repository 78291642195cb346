import { execFile } from 'node:child_process'

/** Resolves to the standard output of a program. Rejects with its whole output if it fails. */
export function run(program: string, args: readonly string[], cwd: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { cwd, timeout: 300_000, maxBuffer: 16 * 1024 * 1024 }
    execFile(program, args, options, (error, stdout, stderr) => {
      if (error === null) resolve(stdout)
      else reject(new Error(`${program} ${args.join(' ')}: ${error.message}\n${stdout}\n${stderr}`))
    })
  })
}

const { npm_execpath: pnpm = 'pnpm' } = process.env
/** The pnpm that runs the test, a program or a script. */
export const pnpmCommand: readonly [string, ...string[]] = /\.[cm]?js$/.test(pnpm)
  ? [process.execPath, pnpm]
  : [pnpm]

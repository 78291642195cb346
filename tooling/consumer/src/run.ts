import { execFile } from 'node:child_process'

/** What the program wrote to standard output; rejects with all that it wrote when it fails. */
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
/** The pnpm that runs the test; it is a program of its own or a script, depending on how it came here. */
export const pnpmCommand: readonly [string, ...string[]] = /\.[cm]?js$/.test(pnpm)
  ? [process.execPath, pnpm]
  : [pnpm]

/**
 * What a script of package.json would need a shell for, and every platform has another one:
 *
 *     node tooling/run.ts turbo …                                             turbo, without the usage data that it sends
 *     node tooling/run.ts [build=PACKAGE] [NAME=value …] FILE …   builds; then the program, at the root
 */
import { spawn, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(import.meta.dirname, '..')
const turbo = fileURLToPath(import.meta.resolve('turbo/bin/turbo'))
// No file of the repository can say so.
Object.assign(process.env, { TURBO_TELEMETRY_DISABLED: '1' })

const args = process.argv.slice(2)
if (args[0] === 'turbo') {
  become([turbo, ...args.slice(1)])
} else {
  process.chdir(root)
  const programAt = args.findIndex(arg => !/^\w+=/.test(arg))
  for (const setting of args.slice(0, programAt)) {
    const [name = '', value = ''] = setting.split('=')
    if (name === 'build') build(value)
    else process.env[name] = value
  }
  become(args.slice(programAt))
}

/** Silent, unless it fails. */
function build(name: string): void {
  const options = ['run', 'build', `--filter=${name}`, '--output-logs=errors-only', '--log-order=grouped']
  const { status, stdout, stderr } = spawnSync(process.execPath, [turbo, ...options], {
    encoding: 'utf8',
    maxBuffer: Number.POSITIVE_INFINITY,
  })
  if (status === 0) return
  process.stderr.write(stdout + stderr)
  process.exit(1)
}

/** Node with these arguments takes the place of this process: signals reach it, and its exit code is the one that is seen. */
function become(nodeArgs: readonly string[]): void {
  if (process.platform !== 'win32')
    process.execve?.(process.execPath, [process.execPath, ...nodeArgs], process.env)
  // Windows has no such call. Its terminal interrupts both processes; the program decides what that means.
  process.on('SIGINT', () => {})
  spawn(process.execPath, nodeArgs, { stdio: 'inherit' }).on('exit', code => process.exit(code ?? 1))
}

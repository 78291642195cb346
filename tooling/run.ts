/**
 * What a script of package.json would need a shell for, and every platform has another one:
 *
 *     node tooling/run.ts turbo …                                 turbo, without the usage data that it sends
 *     node tooling/run.ts test …                                  the tests of all packages, and one total
 *     node tooling/run.ts [build=PACKAGE] [NAME=value …] FILE …   builds; then the program, at the root
 */
import { spawn, spawnSync } from 'node:child_process'
import { globSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'

const root = join(import.meta.dirname, '..')
const turbo = fileURLToPath(import.meta.resolve('turbo/bin/turbo'))
// No file of the repository can say so.
Object.assign(process.env, { TURBO_TELEMETRY_DISABLED: '1' })

const args = process.argv.slice(2)
if (args[0] === 'turbo') {
  become([turbo, ...args.slice(1)])
} else if (args[0] === 'test') {
  test(args.slice(1))
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

/**
 * The tests of all packages. Most of the time they wait: several packages run at once, each with several files.
 *
 * What a package printed is in turbo's log of it, which also comes back from turbo's cache: the total is summed from there.
 */
function test(options: readonly string[]): void {
  const beganMs = performance.now()
  process.chdir(root)
  const logs = () => globSync('{apps,packages,tooling}/*/.turbo/turbo-vitest.log')
  for (const log of logs()) rmSync(log)
  const vitest = [
    '--reporter=../../tooling/harness/src/reporter.ts',
    '--silent=passed-only',
    '--maxWorkers=2',
  ]
  const { status } = spawnSync(
    process.execPath,
    [turbo, 'run', 'vitest', '--concurrency=4', '--log-prefix=none', ...options, '--', ...vitest],
    { stdio: 'inherit' },
  )
  const text = stripVTControlCharacters(
    logs()
      .map(log => readFileSync(log, 'utf8'))
      .join('\n'),
  )
  const files = [
    ...text.matchAll(/^[✓✗] .*: (\d+) tests(?:, (\d+) failed)?(?:, (\d+) skipped)?, [\d.]+ s$/gm),
  ]
  const sum = (group: number) => files.reduce((total, file) => total + Number(file[group] ?? 0), 0)
  const skipped = [...text.matchAll(/^↓ (.*)$/gm)].map(([, test = '']) => test)
  const [tests, failed, seconds] = [sum(1), sum(2), Math.round((performance.now() - beganMs) / 1000)]
  for (const each of skipped) console.log(`SKIPPED ${each}`)
  console.log(
    `\n${files.length} files, ${tests} tests, ${failed} failed, ${skipped.length} skipped, ${seconds} s`,
  )
  // CI tests everything but what it has no right to: not every root may mount a disk or trace a process.
  const { CI } = process.env
  const isWhole = !CI || skipped.every(each => each.includes(': not allowed: '))
  process.exit(status || Number(!isWhole))
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

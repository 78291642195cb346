/**
 * What a script of package.json would need a shell for, and every platform has another one:
 *
 *     node tooling/run.ts turbo …                                 turbo, without the usage data that it sends
 *     node tooling/run.ts test FOLDER …                           the tests of all packages in folders, and one total
 *     node tooling/run.ts [build=PACKAGE] [NAME=value …] FILE …   builds; then the program, at the root
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'

const root = join(import.meta.dirname, '..')
const turbo = fileURLToPath(import.meta.resolve('turbo/bin/turbo'))
// Turbo has no configuration file for this.
Object.assign(process.env, { TURBO_TELEMETRY_DISABLED: '1' })

const args = process.argv.slice(2)
if (args[0] === 'turbo') {
  become([turbo, ...args.slice(1)])
} else if (args[0] === 'test') {
  await test(args.slice(1))
} else {
  process.chdir(root)
  const programAt = args.findIndex(arg => !/^\w+=/.test(arg))
  for (const setting of args.slice(0, programAt)) {
    const [name = '', value = ''] = setting.split('=')
    if (name === 'build') await build(value)
    else process.env[name] = value
  }
  become(args.slice(programAt))
}

/**
 * Runs the tests of all packages in these folders, several packages and files at once, as they mostly wait. Prints
 * cached results too, so that the total covers all files. The last lines name what failed, and packages whose tests failed.
 */
async function test(foldersAndOptions: readonly string[]): Promise<void> {
  const beganMs = performance.now()
  process.chdir(root)
  const vitest = [
    '--reporter=../../tooling/harness/src/reporter.ts',
    '--silent=passed-only',
    '--maxWorkers=2',
  ]
  const run = ['run', 'vitest', '--concurrency=3', '--continue=dependencies-successful', '--log-prefix=none']
  const options = foldersAndOptions.map(each => (each.startsWith('-') ? each : `--filter=./${each}/*`))
  const all = [turbo, ...run, ...options, '--', ...vitest]
  const child = spawn(process.execPath, all, { stdio: ['inherit', 'pipe', 'inherit'] })
  // A terminal interrupts both processes, and turbo then exits with 0.
  let isFinished = true
  process.on('SIGINT', () => {
    isFinished = false
  })
  const ended = once(child, 'close')
  const total = { files: 0, tests: 0 }
  const [skipped, failed, packages]: [string[], string[], string[]] = [[], [], []]
  for await (const line of createInterface(child.stdout)) {
    const text = stripVTControlCharacters(line)
    const [, tests] = /^[✓✗] .*: (\d+) tests.* s$/.exec(text) ?? []
    if (tests !== undefined) {
      total.files++
      total.tests += Number(tests)
    }
    if (text.startsWith('Failed: ')) packages.push(...text.slice('Failed: '.length).trim().split(', '))
    if (text.startsWith('↓ ')) skipped.push(text.slice(2))
    else if (text.startsWith('× ')) failed.push(text.slice(2))
    else if (!/^(cache (hit|miss)|\$ vitest)/.test(text)) console.log(line)
  }
  const [status] = await ended
  for (const each of skipped) console.log(`SKIPPED ${each}`)
  for (const each of [...failed, ...packages]) console.log(`FAILED ${each}`)
  const { files, tests } = total
  const seconds = Math.round((performance.now() - beganMs) / 1000)
  console.log(
    `\n${files} files, ${tests} tests, ${failed.length} failed, ${skipped.length} skipped, ${seconds} s`,
  )
  // CI runs every test that its rights allow: not every root may mount a disk or trace a process.
  const { CI } = process.env
  const isWhole = files > 0 && (!CI || skipped.every(each => each.includes(': not allowed: ')))
  process.exit(isFinished && isWhole && failed.length === 0 ? (status ?? 1) : 1)
}

/** Builds silently, unless it fails or takes longer than a second: the output of the program may be read by another. */
async function build(name: string): Promise<void> {
  const options = ['run', 'build', `--filter=${name}`, '--output-logs=errors-only', '--log-order=grouped']
  const child = spawn(process.execPath, [turbo, ...options], { stdio: ['ignore', 'pipe', 'pipe'] })
  const said: Buffer[] = []
  for (const stream of [child.stdout, child.stderr]) stream.on('data', chunk => said.push(chunk))
  const notice = setTimeout(() => process.stderr.write(`Building ${name} …\n`), 1_000)
  const [status] = await once(child, 'close')
  clearTimeout(notice)
  if (status === 0) return
  process.stderr.write(Buffer.concat(said))
  process.exit(1)
}

/** Replaces this process with Node: signals reach it, and its exit code is returned. */
function become(nodeArgs: readonly string[]): void {
  if (process.platform !== 'win32')
    process.execve?.(process.execPath, [process.execPath, ...nodeArgs], process.env)
  // Windows cannot replace a process. Its terminal interrupts both, and the program decides what to do.
  process.on('SIGINT', () => {})
  spawn(process.execPath, nodeArgs, { stdio: 'inherit' }).on('exit', code => process.exit(code ?? 1))
}

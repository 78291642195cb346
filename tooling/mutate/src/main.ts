import { spawnSync } from 'node:child_process'
import { existsSync, globSync, readFileSync, rmSync } from 'node:fs'
import { SourceMap } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { Stryker } from '@stryker-mutator/core'
import { describeChange } from './change.ts'
import { judge } from './judge.ts'

const usage = `Changes the built code of one package, one expression after the other, and runs its tests each time.
Prints the changes that no test noticed.

  pnpm mutate PACKAGE   a folder of packages or apps
    --only FILE         a source of it, such as src/send.ts; may be given more than once
    --tests FILE        a file of its tests, such as test/send.test.ts, and no other; may be given more than once
`

const root = join(import.meta.dirname, '../../..')
const { values, positionals } = parseArgs({
  options: {
    only: { type: 'string', multiple: true },
    tests: { type: 'string', multiple: true, default: [] },
    help: { type: 'boolean', short: 'h' },
  },
  allowPositionals: true,
})
const [name = ''] = positionals
const folder = globSync(`{packages,apps}/${name || '-'}`, { cwd: root })[0] ?? ''
if (values.help || positionals.length !== 1 || !existsSync(join(root, folder, 'src'))) {
  process.stderr.write(usage)
  process.exit(values.help ? 0 : 2)
}

build(folder)
process.chdir(join(root, folder))
// Also if Stryker is interrupted: it restores the files and exits.
process.on('exit', () => {
  for (const left of globSync('stryker-setup-*.js')) rmSync(left)
  build(folder)
})

process.env['TESTS'] = values.tests.join()
// A change may make a loop endless, and what it collects too.
process.env['NODE_OPTIONS'] =
  `--max-old-space-size=300 --import ${pathToFileURL(join(import.meta.dirname, 'reached.ts'))}`
const sources = new Set(values.only ?? globSync('src/**/*.ts', { exclude: ['src/testing/**'] }))
const results = await new Stryker({
  mutate: globSync('dist/**/*.js').flatMap(builtLines),
  inPlace: true,
  plugins: [
    fileURLToPath(import.meta.resolve('@stryker-mutator/vitest-runner')),
    join(import.meta.dirname, 'wording.ts'),
  ],
  ignorers: ['wording'],
  testRunner: 'vitest',
  vitest: { configFile: join(import.meta.dirname, 'vitest.config.ts'), related: false, pool: 'forks' },
  coverageAnalysis: 'perTest',
  disableTypeChecks: false,
  concurrency: 1,
  // A test that is only slow, as on a busy machine, must not count as noticed.
  timeoutMS: 30_000,
  dryRunTimeoutMinutes: 10,
  tempDirName: 'node_modules/.stryker',
  reporters: [process.stdout.isTTY ? 'progress' : 'progress-append-only'],
  warnings: false,
}).runMutationTest()

const mutants = results.map(({ fileName, location, replacement, status }) => {
  const { source, line } = sourceOf(fileName)(location.start.line, location.start.column)
  const change = describeChange(readFileSync(fileName, 'utf8'), { location, replacement })
  return { source, line, change, status }
})
const list = join(import.meta.dirname, '../equivalent', `${name}.json`)
const result = judge(mutants, existsSync(list) ? JSON.parse(readFileSync(list, 'utf8')) : {})
for (const { source, line, change } of result.unnoticed) console.log(`${source}:${line}  ${change}`)
for (const { source, line, change } of result.timedOut) console.log(`timed out ${source}:${line}  ${change}`)
console.log(`${name}: ${result.summary}`)
for (const each of result.useless)
  console.error(`not a survivor, take it off ${list.slice(root.length + 1)}: ${each}`)
if (result.useless.length > 0 || mutants.length === 0) process.exitCode = 1

/**
 * Returns a function from a place in a built file to its source. A program is built from many sources, also of other
 * packages.
 */
function sourceOf(path: string): (line: number, column: number) => { source: string; line: number } {
  const map = new SourceMap(JSON.parse(readFileSync(`${path}.map`, 'utf8')))
  return (line, column) => {
    const entry = map.findEntry(line - 1, column - 1)
    if (!('originalSource' in entry)) return { source: '', line: 0 }
    const source = relative('.', join(dirname(path), entry.originalSource))
    return { source, line: entry.originalLine + 1 }
  }
}

/** Returns the lines of a built file that come from our sources, not from libraries or the compiler's helpers. */
function builtLines(path: string): readonly string[] {
  if (!existsSync(`${path}.map`)) return []
  const sourceAt = sourceOf(path)
  const lines = readFileSync(path, 'utf8').split('\n')
  const ours = lines.flatMap((_, n) => (sources.has(sourceAt(n + 1, 1).source) ? [n + 1] : []))
  const first = ours.filter(line => !ours.includes(line - 1))
  const last = ours.filter(line => !ours.includes(line + 1))
  return first.map((line, n) => `${path}:${line}-${last[n]}`)
}

function build(path: string): void {
  const turbo = ['turbo', 'run', 'build', `--filter=./${path}`, '--output-logs=errors-only']
  const run = spawnSync(process.execPath, [join(root, 'tooling/run.ts'), ...turbo], {
    cwd: root,
    encoding: 'utf8',
  })
  if (run.status === 0) return
  process.stderr.write(run.stdout + run.stderr)
  process.exit(1)
}

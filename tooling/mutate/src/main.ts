import { spawnSync } from 'node:child_process'
import { existsSync, globSync, readFileSync, rmSync } from 'node:fs'
import { SourceMap } from 'node:module'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { Stryker } from '@stryker-mutator/core'
import { describeChange } from './change.ts'
import { judge, type Mutant } from './judge.ts'
import { tested } from './tested.ts'

const usage = `Changes the built code of one package, one expression after the other, and runs its tests each time.
Prints the changes that no test noticed, at once: an interrupted run judges what it has tried.

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
// A program is bundled again, from the changed sources: its tests start it, and import some sources too.
const isBundled = existsSync('build.ts')
const sources = values.only ?? globSync('src/**/*.ts', { exclude: ['src/testing/**'] })
const changed = isBundled ? sources : globSync('dist/**/*.js')
const code = new Map(changed.map(file => [resolve(file), readFileSync(file, 'utf8')]))
const list = join(import.meta.dirname, '../equivalent', `${name}.json`)
const equivalents = existsSync(list) ? JSON.parse(readFileSync(list, 'utf8')) : {}
const mutants: Mutant[] = []
tested.on('mutant', ({ fileName, location, replacement, status: given, statusReason = '' }) => {
  const { source, line } = sourceOf(fileName)(location.start.line, location.start.column)
  const change = describeChange(code.get(fileName) as string, { location, replacement })
  // A file of tests that fails while it is loaded fails the run.
  const isNoticed = given === 'RuntimeError' && statusReason.startsWith('An error occurred outside of a test')
  const status = isNoticed ? 'Killed' : given
  const mutant = { source, line, change, status }
  mutants.push(mutant)
  const [unnoticed] = judge([mutant], equivalents).unnoticed
  if (unnoticed) console.log(`${source}:${line}  ${change}`)
})
// Also if Stryker is interrupted: it restores the files and exits.
process.on('exit', () => {
  const { timedOut, summary } = judge(mutants, equivalents)
  for (const { source, line, change } of timedOut) console.log(`timed out ${source}:${line}  ${change}`)
  const tried = [...new Set(mutants.map(({ source }) => source))]
  for (const source of tried.length > 1 ? tried : []) {
    const own = mutants.filter(each => each.source === source)
    console.log(`${source}: ${judge(own, equivalents).summary}`)
  }
  console.log(`${name}: ${summary}`)
  for (const left of globSync('stryker-setup-*.js')) rmSync(left)
  build(folder)
})

process.env['TESTS'] = values.tests.join()
// Stryker knows a test by its name, which may contain its seed.
process.env['SEED'] = '1'
// A change may make a loop endless, and what it collects too.
process.env['NODE_OPTIONS'] =
  `--max-old-space-size=300 --import ${pathToFileURL(join(import.meta.dirname, 'reached.ts'))}`
await new Stryker({
  mutate: isBundled ? sources : [...code.keys()].flatMap(builtLines),
  inPlace: true,
  ...(isBundled && { buildCommand: `${process.execPath} build.ts` }),
  plugins: [
    fileURLToPath(import.meta.resolve('@stryker-mutator/vitest-runner')),
    join(import.meta.dirname, 'wording.ts'),
    join(import.meta.dirname, 'tested.ts'),
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
  reporters: ['tested', process.stdout.isTTY ? 'progress' : 'progress-append-only'],
  warnings: false,
}).runMutationTest()

const { useless } = judge(mutants, equivalents)
for (const each of useless)
  console.error(`not a survivor, take it off ${list.slice(root.length + 1)}: ${each}`)
if (useless.length > 0 || mutants.length === 0) process.exitCode = 1

/** Returns a function from a place in a changed file to its source. */
function sourceOf(path: string): (line: number, column: number) => { source: string; line: number } {
  if (isBundled) return line => ({ source: relative('.', path), line })
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
  const ours = lines.flatMap((_, n) => (sources.includes(sourceAt(n + 1, 1).source) ? [n + 1] : []))
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

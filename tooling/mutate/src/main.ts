import { spawnSync } from 'node:child_process'
import { existsSync, globSync, readFileSync, rmSync } from 'node:fs'
import { SourceMap } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { Stryker } from '@stryker-mutator/core'
import { describeChange } from './change.ts'
import { judge } from './judge.ts'

const usage = `Changes the built code of one package, one expression after the other, and runs its tests each time.
Prints the changes that no test noticed.

  pnpm mutate PACKAGE   a folder of packages
    --only FILE         a source of it, such as src/send.ts; may be given more than once
    --without FILE      a file of tests that is left out, such as test/send.test.ts; may be given more than once
`

const root = join(import.meta.dirname, '../../..')
const { values, positionals } = parseArgs({
  options: {
    only: { type: 'string', multiple: true },
    without: { type: 'string', multiple: true, default: [] },
    help: { type: 'boolean', short: 'h' },
  },
  allowPositionals: true,
})
const [name = ''] = positionals
const folder = join('packages', name)
if (values.help || positionals.length !== 1 || !existsSync(join(root, folder, 'src'))) {
  process.stderr.write(usage)
  process.exit(values.help ? 0 : 2)
}

build(folder)
process.chdir(join(root, folder))
// Also when Stryker is interrupted: it restores the files and exits.
process.on('exit', () => {
  for (const left of globSync('stryker-setup-*.js')) rmSync(left)
  build(folder)
})

process.env['TESTS_LEFT_OUT'] = values.without.join()
// A change may make a loop endless, and what it collects too.
process.env['NODE_OPTIONS'] = `--max-old-space-size=1000 --import ${pathToFileURL(join(import.meta.dirname, 'reached.ts'))}`
const sources = values.only ?? globSync('src/**/*.ts', { exclude: ['src/testing/**'] })
const results = await new Stryker({
  mutate: sources.map(builtLines),
  inPlace: true,
  plugins: [fileURLToPath(import.meta.resolve('@stryker-mutator/vitest-runner'))],
  testRunner: 'vitest',
  vitest: { configFile: join(import.meta.dirname, 'vitest.config.ts'), related: false, pool: 'forks' },
  coverageAnalysis: 'perTest',
  disableTypeChecks: false,
  concurrency: 1,
  // What is only slow, as on a busy machine, must not count as noticed.
  timeoutMS: 30_000,
  dryRunTimeoutMinutes: 10,
  tempDirName: 'node_modules/.stryker',
  reporters: [process.stdout.isTTY ? 'progress' : 'progress-append-only'],
  warnings: false,
}).runMutationTest()

const mutants = results.map(({ fileName, location, replacement, status }) => {
  const { line, column } = location.start
  const map = new SourceMap(JSON.parse(readFileSync(`${fileName}.map`, 'utf8')))
  const { originalLine } = map.findEntry(line - 1, column - 1) as { originalLine: number }
  const source = fileName
    .slice(process.cwd().length + 1)
    .replace(/^dist/, 'src')
    .replace(/\.js$/, '.ts')
  const change = describeChange(readFileSync(fileName, 'utf8'), { location, replacement })
  return { source, line: originalLine + 1, change, status }
})
const list = join(import.meta.dirname, '../equivalent', `${name}.json`)
const result = judge(mutants, existsSync(list) ? JSON.parse(readFileSync(list, 'utf8')) : {})
for (const { source, line, change } of result.unnoticed) console.log(`${source}:${line}  ${change}`)
for (const { source, line, change } of result.timedOut) console.log(`timed out ${source}:${line}  ${change}`)
console.log(`${name}: ${result.summary}`)
for (const each of result.useless)
  console.error(`not a survivor, take it off ${list.slice(root.length + 1)}: ${each}`)
if (result.useless.length > 0 || mutants.length === 0) process.exitCode = 1

/** Returns the lines of a built file that come of its source: the compiler's own helpers stand before them. */
function builtLines(source: string): string {
  const path = source.replace(/^src\b/, 'dist').replace(/\.ts$/, '.js')
  const map = new SourceMap(JSON.parse(readFileSync(`${path}.map`, 'utf8')))
  const lines = readFileSync(path, 'utf8').split('\n')
  const first = lines.findIndex((_, line) => 'originalLine' in map.findEntry(line, 0))
  return `${path}:${Math.max(first, 0) + 1}-${lines.length}`
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

import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { availableParallelism, totalmem } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import Database from 'better-sqlite3'
import { bunVersion } from './contestants.ts'
import { type Effort, parts } from './parts.ts'
import { drawCreates, themes } from './picture.ts'

const usage = `pnpm bench [part …]   measures, and prints a table for each part; without parts all of them, into docs/benchmark.md
  creates   compared with Fastify and better-sqlite3, and with Bun and bun:sqlite
  reads     by id, compared with the same
  pages     of 100 plants, compared with the same
  fsyncs    what creates wait for; fails if an answer did not wait
  profiles  where the processor time of creates goes, in ours and in Fastify's
  allocations   bytes that a request allocates, by function, in ours and in Fastify's
  import    of the command line, compared with sqlite3's
  batch     many plants in one request, compared with single creates
  --quick   to see that it works: one round of each, whose figures mean nothing`

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { help: { type: 'boolean' }, quick: { type: 'boolean' } },
})
const names = positionals.length === 0 ? Object.keys(parts) : positionals
const unknown = names.find(name => !(name in parts))
if (values.help || unknown !== undefined) {
  console.log(unknown === undefined ? usage : `there is no part ${unknown}\n${usage}`)
  process.exit(unknown === undefined ? 0 : 1)
}
const missing = ['wrk', 'sqlite3', 'strace'].filter(
  tool => spawnSync(tool, ['--version']).error,
)
if (missing.length > 0) {
  throw new Error(`missing: apt-get install ${missing.join(' ')}`)
}

const effort: Effort = values.quick
  ? { rounds: 1, warmUpSeconds: 1, plantsInFile: 50_000 }
  : { rounds: 5, warmUpSeconds: 15, plantsInFile: 1_000_000 }
const sqlite = new Database(':memory:')
  .prepare<[], string>('select sqlite_version()')
  .pluck()
  .get()
const sections: string[] = []
for (const name of names) {
  const { title, text } = await (parts[name] as (typeof parts)[string])(effort)
  sections.push(`## ${title}`, text)
}
const page = `# Benchmark

The load comes from wrk on the same machine and takes processor time from the servers. All stay up.
Each is warmed for ${effort.warmUpSeconds} seconds, because V8 compiles for that long. Then they are measured in turns,
one second each. A figure is the median of ${effort.rounds} rounds, and a ratio the median of the rounds' ratios.
Machines differ more than programs: compare ratios, and run \`pnpm bench\` on yours.

A **durable** answer is sent once the plant is on disk (\`synchronous = FULL\`). One that is **not
durable** (\`NORMAL\`) can be lost in a power cut. The other servers do less: they check no token, write
no log, have no index of tags, and take ids up to 2^53 only.

${sections.join('\n\n')}

## Machine

${availableParallelism()} cores and ${Math.round(totalmem() / 2 ** 30)} GiB of memory (${process.platform}, ${process.arch}), Node ${process.versions.node}, SQLite ${sqlite}, Bun ${await bunVersion()}.
Every answer was a 200, and afterwards every store contained all plants that it had answered for.
`
const root = join(import.meta.dirname, '../../..')
const folder = join(
  root,
  positionals.length === 0 && !values.quick ? 'docs' : 'tooling/bench/results',
)
mkdirSync(folder, { recursive: true })
writeFileSync(join(folder, 'benchmark.md'), page)
if (names.includes('creates')) {
  for (const [name, theme] of Object.entries(themes)) {
    writeFileSync(join(folder, `benchmark-${name}.svg`), drawCreates(page, theme))
  }
}
console.log(page)
console.error(`written to ${folder}`)

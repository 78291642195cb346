import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { bunVersion } from './contestants.ts'
import { describeMachine, introductionOf } from './page.ts'
import { parts } from './parts.ts'
import { drawCreates, themes } from './picture.ts'
import { sqliteVersion } from './plants.ts'

const usage = `pnpm bench [part …]   measures, and prints a table for each part; without parts all of them, into docs/benchmark.md
  creates   compared with Fastify and better-sqlite3, and with Bun and bun:sqlite
  reads     by id, compared with the same
  pages     of 100 plants, compared with the same
  fsyncs    what creates wait for; fails if an answer did not wait
  import    of the command line, compared with sqlite3's`

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { help: { type: 'boolean' } },
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

const effort = { rounds: 5, warmUpSeconds: 15, plantsInFile: 1_000_000 }
const sections = [introductionOf(effort).trimEnd()]
for (const [name, { title, run }] of Object.entries(parts)) {
  if (names.includes(name)) {
    sections.push(`## ${title}`, await run(effort))
  }
}
const machine = describeMachine({ SQLite: sqliteVersion(), Bun: await bunVersion() })
const page = `${[...sections, '## Machine', machine].join('\n\n')}\n`

const isWhole = positionals.length === 0
const root = join(import.meta.dirname, '../../..')
const folder = join(root, isWhole ? 'docs' : 'tooling/bench/results')
mkdirSync(folder, { recursive: true })
writeFileSync(join(folder, 'benchmark.md'), page)
if (names.includes('creates')) {
  for (const [name, theme] of Object.entries(themes)) {
    writeFileSync(join(folder, `benchmark-${name}.svg`), drawCreates(page, theme))
  }
}
console.log(page)
console.error(`written to ${folder}`)

import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { availableParallelism, totalmem } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import Database from 'better-sqlite3'
import { bunVersion } from './contestants.ts'
import { page, type Section } from './page.ts'
import { batch } from './parts/batch.ts'
import { creates } from './parts/creates.ts'
import { fsyncs } from './parts/fsyncs.ts'
import { growth } from './parts/growth.ts'
import { importAndExport } from './parts/import.ts'
import { reads } from './parts/reads.ts'
import { sharing } from './parts/sharing.ts'
import type { Effort } from './turns.ts'

const usage = `pnpm bench [part …]   measures, and prints what it found; without parts all of them, into docs/benchmark.md
  creates             beside what others would have built
  reads               by id and lists, beside the same
  growth              a store of many plants beside one of few
  sharing             creates on PostgreSQL, beside one INSERT a request
  import              the command line's import and export, beside sqlite3's
  batch               many plants in one request, beside single creates and import, and what others notice
  fsyncs              what creates wait for; fails when an answer did not wait
  --quick             to see that it works: one round of each, whose figures mean nothing`

const parts: Readonly<Record<string, (effort: Effort) => Promise<Section>>> = {
  ...{ creates, reads, growth, sharing, import: importAndExport, batch, fsyncs },
}
const tools = ['wrk', 'sqlite3', 'strace']
const root = fileURLToPath(new URL('../../..', import.meta.url))

const stopping = new AbortController()
process.once('SIGINT', () => stopping.abort(new Error('stopped')))

try {
  await main()
} catch (error) {
  console.error(`bench: ${(error as Error).message}`)
  process.exitCode = 1
}

async function main(): Promise<void> {
  const options = { help: { type: 'boolean' }, quick: { type: 'boolean' } } as const
  const { values, positionals } = parseArgs({ allowPositionals: true, options })
  if (values.help) return console.log(usage)
  const effort: Effort = values.quick
    ? { rounds: 1, warmUpSeconds: 1, manyPlants: 100_000, plantsInFile: 50_000, signal: stopping.signal }
    : {
        rounds: 5,
        warmUpSeconds: 8,
        manyPlants: 10_000_000,
        plantsInFile: 1_000_000,
        signal: stopping.signal,
      }
  const missing = tools.filter(tool => spawnSync(tool, ['--version']).error !== undefined)
  if (missing.length > 0)
    throw new Error(`missing: ${missing.join(', ')} (apt-get install ${missing.join(' ')})`)

  const sections: Section[] = []
  for (const name of positionals.length === 0 ? Object.keys(parts) : positionals) {
    const part = parts[name]
    if (part === undefined) throw new Error(`there is no part ${name}\n${usage}`)
    sections.push(await part(effort))
  }
  const text = page(sections, { machine: describeMachine(), rounds: effort.rounds })
  const isWhole = positionals.length === 0 && !values.quick
  const folder = join(root, isWhole ? 'docs' : 'tooling/bench/results')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'benchmark.md'), text)
  const picture = sections.find(section => section.picture)?.picture
  if (picture) writeFileSync(join(folder, 'benchmark.svg'), picture)
  console.log(text)
  console.error(`written to ${folder}`)
}

/** Describes the machine as far as a reader needs, without its owner. */
function describeMachine(): string {
  const sqlite = new Database(':memory:').prepare<[], string>('select sqlite_version()').pluck().get()
  const memory = Math.round(totalmem() / 2 ** 30)
  return (
    `${availableParallelism()} cores and ${memory} GiB of memory (${process.platform}, ${process.arch}), ` +
    `Node ${process.versions.node}, SQLite ${sqlite}, Bun ${bunVersion()}`
  )
}

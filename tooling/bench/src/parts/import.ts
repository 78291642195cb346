import { createWriteStream, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { launch, type Program, startCommand, temporaryFolder } from '@plant-store/harness'
import type { Section } from '../page.ts'
import { peakMebibytes } from '../process-figures.ts'
import { formatDecimal, formatInteger, formatRatio, median, medianRatio, table } from '../table.ts'
import type { Effort } from '../turns.ts'

interface Run {
  readonly seconds: number
  readonly mebibytes: number
  readonly output: string
}

/** Measures the command's import and export beside SQLite's shell. The output must equal the input byte for byte. */
export async function importAndExport({ plantsInFile, signal, ...effort }: Effort): Promise<Section> {
  const rounds = Math.min(effort.rounds, 3)
  using folder = temporaryFolder()
  const file = (name: string) => join(folder.path, name)
  const store = file('store.db')
  const { PATH } = process.env
  const plantStore = (...args: string[]) => timed(startCommand(args, { databaseUrl: `file:${store}` }))
  const shell = (...commands: string[]) =>
    timed(launch(['sqlite3', '-bail', store, ...commands], { environment: { PATH } }))

  const intoEmptyStore = async (run: () => Promise<Run>) => {
    for (const suffix of ['', '-wal', '-shm']) rmSync(store + suffix, { force: true })
    // Creates the tables.
    await plantStore('token', 'create', '--name', 'bench')
    const result = await run()
    const { output } = await shell('select count(*) from plants')
    if (Number(output) !== plantsInFile) throw new Error(`there are ${output} plants, not ${plantsInFile}`)
    return result
  }
  const imported = (name: string) => intoEmptyStore(() => plantStore('import', file(name)))
  const exported = async (format: string) => {
    const run = await plantStore('export', file('exported'), '--force', '--format', format)
    if (!readFileSync(file('exported')).equals(readFileSync(file(`plants.${format}`))))
      throw new Error(`the exported ${format} is not what was imported`)
    return run
  }
  const csvImport = `.import --csv --skip 1 ${file('rows.csv')} plants`
  const wal = 'pragma journal_mode = wal'
  const turns: readonly [title: string, beside: number, run: () => Promise<Run>][] = [
    [
      'sqlite3: .import, CSV',
      0,
      () => intoEmptyStore(() => shell(wal, 'pragma synchronous = full', csvImport)),
    ],
    ['plant-store import, CSV', 0, () => imported('plants.csv')],
    ['plant-store import, NDJSON', 0, () => imported('plants.ndjson')],
    [
      'sqlite3: select, CSV',
      3,
      () => shell('.mode csv', `.once ${file('shell.csv')}`, 'select id, name, tag from plants order by id'),
    ],
    ['plant-store export, CSV', 3, () => exported('csv')],
    ['plant-store export, NDJSON', 3, () => exported('ndjson')],
  ]

  await writePlants(file, plantsInFile)
  const runs = turns.map((): Run[] => [])
  for (let round = 1; round <= rounds; round++) {
    for (const [row, [title, , run]] of turns.entries()) {
      signal.throwIfAborted()
      const result = await run()
      runs[row]?.push(result)
      console.error(`round ${round}: ${title}: ${formatDecimal(result.seconds)} s`)
    }
  }
  const seconds = (row: number) => (runs[row] ?? []).map(run => run.seconds)
  const rows = turns.map(([title, beside], row) => [
    title,
    formatDecimal(median(seconds(row))),
    row === beside ? '' : formatRatio(medianRatio(seconds(row), seconds(beside))),
    formatInteger(Math.max(...(runs[row] ?? []).map(run => run.mebibytes))),
  ])
  return {
    title: 'Import and export',
    text: [
      `${formatInteger(plantsInFile)} plants on the command line, compared with SQLite's shell, medians of ${rounds}:`,
      table(['', 's', 'ours / sqlite3', 'peak MiB'], rows),
    ].join('\n\n'),
  }
}

async function timed(program: Program): Promise<Run> {
  const startedMs = performance.now()
  let mebibytes = 0
  const watch = setInterval(() => {
    mebibytes = Math.max(mebibytes, peakMebibytes(program.pid))
  }, 50)
  const ending = await program.ended
  clearInterval(watch)
  if (ending !== 0)
    throw new Error(`${program.process.spawnargs.join(' ')} ended with ${ending}: ${program.errors()}`)
  return { seconds: (performance.now() - startedMs) / 1000, mebibytes, output: program.output() }
}

async function writePlants(file: (name: string) => string, count: number): Promise<void> {
  const write = (name: string, head: string, line: (id: number, name: string, tag: string) => string) => {
    const lines = function* () {
      yield head
      for (let n = 0; n < count; n++) yield line(n * 7, `Plant no ${n}`, `kind ${n % 500}`)
    }
    return pipeline(Readable.from(lines()), createWriteStream(file(name)))
  }
  await write('plants.csv', 'id,name,tag\n', (id, name, tag) => `${id},${name},${tag}\n`)
  // For SQLite's shell: a row of the table has a version, which `plant-store import` adds.
  await write('rows.csv', 'id,name,tag,version\n', (id, name, tag) => `${id},${name},${tag},${id}\n`)
  await write('plants.ndjson', '', (id, name, tag) => `${JSON.stringify({ id, name, tag })}\n`)
}

/**
 * How long the command line takes to import and export a million plants, beside SQLite's own shell: the same rows, the
 * same tables, the same journal and fsyncs, in turns. Wants `sqlite3` on the path.
 *
 * node src/import-speed.ts [rows, 1000000] [rounds, 3]
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, statSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const [rows = 1_000_000, rounds = 3] = process.argv.slice(2).map(Number)
const cli = join(import.meta.dirname, '../../../apps/cli/dist/main.js')
const folder = mkdtempSync(join(tmpdir(), 'plant-store-drill-'))
const file = (name: string) => join(folder, name)
const store = file('store.db')

try {
  await main()
} finally {
  rmSync(folder, { recursive: true })
}

async function main(): Promise<void> {
  writePlants(rows)
  console.log(
    `${rows} plants: ${mebibytes(statSync(file('plants.ndjson')).size)} of NDJSON, ${rounds} rounds in turns`,
  )

  const imports = { ours: [] as Run[], csv: [] as Run[], strict: [] as Run[], shell: [] as Run[] }
  const exports = { ours: [] as Run[], csv: [] as Run[], shell: [] as Run[] }
  for (let round = 0; round < rounds; round++) {
    await makeStore()
    imports.shell.push(
      await shell('pragma synchronous = full', '.mode csv', `.import ${file('rows.csv')} plants`),
    )
    await expectRows()
    rmSync(file('shell.csv'), { force: true })
    exports.shell.push(
      await shell('.mode csv', `.once ${file('shell.csv')}`, 'select id, name, tag from plants order by id'),
    )

    await makeStore()
    imports.strict.push(await plantStore('import', file('plants.ndjson'), '--strict'))
    await makeStore()
    imports.csv.push(await plantStore('import', file('plants.csv')))
    await makeStore()
    imports.ours.push(await plantStore('import', file('plants.ndjson')))
    await expectRows()
    exports.ours.push(await plantStore('export', file('ours.ndjson'), '--force'))
    exports.csv.push(await plantStore('export', file('ours.csv'), '--force', '--format', 'csv'))
    for (const name of ['ndjson', 'csv']) {
      const same = readFileSync(file(`ours.${name}`)).equals(readFileSync(file(`plants.${name}`)))
      if (!same) throw new Error(`the ${name} that was exported is not what was imported`)
    }
  }

  tell('sqlite3 .import (CSV)', imports.shell)
  tell('import NDJSON', imports.ours, imports.shell)
  tell('import CSV', imports.csv, imports.shell)
  tell('import NDJSON --strict', imports.strict, imports.shell)
  tell('sqlite3 select (CSV)', exports.shell)
  tell('export NDJSON', exports.ours, exports.shell)
  tell('export CSV', exports.csv, exports.shell)

  // Memory: a third of the rows needs as much as all of them, or it grows with their number.
  writePlants(Math.round(rows / 3))
  await makeStore()
  const small = await plantStore('import', file('plants.ndjson'))
  const smallExport = await plantStore('export', file('ours.ndjson'), '--force')
  console.log(
    `memory at its peak, a third of the rows | all: import ${mebibytes(small.peakBytes)} | ${peak(imports.ours)}, ` +
      `export ${mebibytes(smallExport.peakBytes)} | ${peak(exports.ours)}`,
  )
}

interface Run {
  readonly seconds: number
  readonly peakBytes: number
}

/** The files that both import; the names and tags are made up, the same every time. */
function writePlants(count: number): void {
  const [ndjson, csv, headless] = ['plants.ndjson', 'plants.csv', 'rows.csv'].map(name =>
    openSync(file(name), 'w'),
  ) as [number, number, number]
  let state = 42
  const random = (below: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
  writeSync(csv, 'id,name,tag\n')
  for (let from = 0; from < count; from += 10_000) {
    let lines = ''
    let fields = ''
    for (let n = from; n < Math.min(from + 10_000, count); n++) {
      const name = `Plant no ${n} ${random(2 ** 31).toString(36)}`
      const tag = `kind ${random(500)}`
      lines += `${JSON.stringify({ id: n * 7, name, tag })}\n`
      fields += `${n * 7},${name},${tag}\n`
    }
    writeSync(ndjson, lines)
    writeSync(csv, fields)
    writeSync(headless, fields)
  }
  for (const descriptor of [ndjson, csv, headless]) closeSync(descriptor)
}

/** An empty store, made by the program itself, in the journal mode that it works in. */
async function makeStore(): Promise<void> {
  for (const suffix of ['', '-wal', '-shm']) rmSync(store + suffix, { force: true })
  await plantStore('token', 'create', '--name', 'drill')
  await shell('pragma journal_mode = wal')
}

async function expectRows(): Promise<void> {
  const { stdout } = await run('sqlite3', [store, 'select count(*) from plants'])
  if (Number(stdout) !== rows) throw new Error(`there are ${stdout} plants, not ${rows}`)
}

function plantStore(...args: string[]): Promise<Run> {
  return run(process.execPath, [cli, ...args])
}

function shell(...commands: string[]): Promise<Run> {
  return run('sqlite3', ['-bail', store, ...commands])
}

async function run(program: string, args: readonly string[]): Promise<Run & { stdout: string }> {
  const startedMs = performance.now()
  const child = spawn(program, args, {
    env: { ...process.env, DATABASE_URL: `file:${store}` },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let stdout = ''
  let peakBytes = 0
  child.stdout.setEncoding('utf8').on('data', text => {
    stdout += text
  })
  const watch = setInterval(() => {
    peakBytes = Math.max(peakBytes, residentPeak(child.pid as number))
  }, 50)
  const [code] = await once(child, 'close')
  clearInterval(watch)
  if (code !== 0) throw new Error(`${program} ${args.join(' ')} ended with ${code}`)
  return { seconds: (performance.now() - startedMs) / 1000, peakBytes, stdout }
}

/** What Linux says was the most memory that a process had at once, in bytes; 0 where nobody says. */
function residentPeak(pid: number): number {
  try {
    return Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024
  } catch {
    return 0
  }
}

function tell(what: string, runs: readonly Run[], beside?: readonly Run[]): void {
  const seconds = runs.map(run => run.seconds)
  const ratio = beside && median(seconds.map((value, round) => value / (beside[round] as Run).seconds))
  const spread = seconds.map(value => value.toFixed(1)).join(' ')
  console.log(
    `${what.padEnd(24)} ${median(seconds).toFixed(1).padStart(5)} s` +
      `${ratio === undefined ? '          ' : `  ${ratio.toFixed(2)} ×  `}  (${spread})  ${peak(runs)}`,
  )
}

function peak(runs: readonly Run[]): string {
  return mebibytes(Math.max(...runs.map(run => run.peakBytes)))
}

function mebibytes(bytes: number): string {
  return `${Math.round(bytes / 2 ** 20)} MiB`
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return (
    ((sorted[Math.floor((sorted.length - 1) / 2)] as number) +
      (sorted[Math.floor(sorted.length / 2)] as number)) /
    2
  )
}

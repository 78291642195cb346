import { createReadStream, rmSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { json } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import {
  launch,
  type Program,
  startCommand,
  temporaryFolder,
  trace,
} from '@plant-store/harness'
import { allocations } from './allocations.ts'
import { contestants, ours, type Running, start, startAll, token } from './contestants.ts'
import { type Load, type Measured, measure, peakMebibytes } from './load.ts'
import { countPlants, writeLines } from './plants.ts'
import { profiles } from './profile.ts'
import {
  formatDecimal,
  formatInteger,
  formatRatio,
  median,
  medianRatio,
  table,
} from './table.ts'

/** The time for the measurements. */
export interface Effort {
  readonly rounds: number
  /** V8 compiles for some 15 seconds under load. */
  readonly warmUpSeconds: number
  readonly plantsInFile: number
}

/** A part of the benchmark, with one table. */
interface ImportRun {
  readonly seconds: number
  readonly mebibytes: number
}

type ImportTurn = readonly [title: string, run: () => Program]

type Part = (effort: Effort) => Promise<{ readonly title: string; readonly text: string }>

const storedPlants = 100_000

export const parts: Readonly<Record<string, Part>> = {
  creates: async effort => ({
    title: 'Creates',
    text: await compared(effort, creates, 0),
  }),
  reads: async effort => ({
    title: 'Reads by id',
    text: await compared(effort, reads, storedPlants),
  }),
  pages: async effort => ({
    title: 'Pages of 100',
    text: await compared(effort, pages, storedPlants),
  }),
  fsyncs,
  profiles,
  allocations,
  import: importFiles,
  batch,
}

const several = (request: Load['request']) =>
  [1, 64].map(connections => ({ request, connections }))
const creates = several('create')
const reads = several('/plants/%s')
const pages = several('/plants?limit=100&after=%s')

/**
 * Measures contestants in turns, so that noise affects all of them alike, and returns a
 * table.
 */
async function compared(
  effort: Effort,
  loads: readonly Load[],
  plants: number,
): Promise<string> {
  // The durability modes differ only in writes, so reads are measured in one of them.
  await using started = await startAll(contestants.slice(0, plants === 0 ? 5 : 3), plants)
  const rows: string[][] = []
  for (const one of started.running) {
    await measure(one, loads.at(-1) as Load, effort.warmUpSeconds)
  }
  for (const load of loads) {
    const measured = await measureInTurns(started.running, load, effort.rounds)
    for (const [column, { title }] of started.running.entries()) {
      const figures = (name: keyof Measured, of = column) =>
        (measured[of] ?? []).map(each => each[name])
      rows.push([
        title,
        `${load.connections}`,
        formatInteger(median(figures('perSecond'))),
        column === 0
          ? ''
          : formatRatio(medianRatio(figures('perSecond', 0), figures('perSecond'))),
        ...(['p50Ms', 'p99Ms', 'processorMicros'] as const).map(name =>
          formatDecimal(median(figures(name))),
        ),
      ])
    }
  }
  const head = ['a second', 'ours / theirs', 'p50 ms', 'p99 ms', 'processor µs']
  return table(['', 'connections', ...head], rows)
}

/** Returns the results of each contestant. */
async function measureInTurns(
  running: readonly Running[],
  load: Load,
  rounds: number,
): Promise<readonly (readonly Measured[])[]> {
  const measured = running.map((): Measured[] => [])
  for (let round = 1; round <= rounds; round++) {
    for (const [column, one] of running.entries()) {
      const result = await measure(one, load)
      measured[column]?.push(result)
      console.error(
        `${load.connections} connections: ${one.title}: ${formatInteger(result.perSecond)} a second`,
      )
    }
  }
  return measured
}

/** @throws Error if a single client got an answer without an fsync of its own */
async function fsyncs() {
  await using running = await start(ours)
  const rows: string[][] = []
  for (const connections of [1, 64]) {
    const tracer = await trace(running.server.pid)
    if (tracer === undefined) {
      throw new Error('strace may not attach to the server')
    }
    const { requests } = await measure(running, { request: 'create', connections })
    // An interrupted call has a second line, which says "resumed" and names no file.
    const calls = (await tracer.detach()).filter(call =>
      / (fsync|fdatasync)\(\d+<[^>]*\.db/.test(call),
    )
    if (connections === 1 && calls.length < requests) {
      throw new Error(
        `${requests} creates were answered one after another, with ${calls.length} fsyncs`,
      )
    }
    rows.push(
      [connections, requests, calls.length]
        .map(formatInteger)
        .concat(formatDecimal(requests / calls.length)),
    )
  }
  const words =
    'Counted with strace, which slows the server down.\nA single client waits for an fsync each time. Many share theirs.'
  const columns = ['connections', 'creates', 'fsyncs', 'creates per fsync']
  return {
    title: 'Fsyncs',
    text: `${words}\n\n${table(columns, rows)}`,
  }
}

const inARow = (number: number) => BigInt(number)
const scattered = (number: number) =>
  BigInt.asIntN(64, BigInt(number) * 0x9e3779b97f4a7c15n)
const ndjson = (idOf: (number: number) => bigint) => (number: number) =>
  `{"id":${idOf(number)},"name":"Plant ${number}","tag":"tag-${number % 500}"}`

async function importFiles({ plantsInFile, ...effort }: Effort) {
  const rounds = Math.min(effort.rounds, 3)
  using folder = temporaryFolder()
  const file = (name: string) => join(folder.path, name)
  // SQLite's shell gets the version of each row too, because only our import adds it.
  const csv = (number: number) => `${number},Plant ${number},tag-${number % 500}`
  await writeLines(file('rows.csv'), plantsInFile, number => `${csv(number)},${number}`)
  await writeLines(file('plants.csv'), plantsInFile + 1, number =>
    number === 1 ? 'id,name,tag' : csv(number - 1),
  )
  await writeLines(file('plants.ndjson'), plantsInFile, ndjson(inARow))
  await writeLines(file('scattered.ndjson'), plantsInFile, ndjson(scattered))
  const store = file('store.db')
  const { PATH } = process.env
  const shell = ['pragma synchronous = full', `.import --csv ${file('rows.csv')} plants`]
  const plantStore = (...args: string[]) =>
    startCommand(args, { databaseUrl: `file:${store}` })
  const runSqlite = () =>
    launch(['sqlite3', '-bail', store, ...shell], { environment: { PATH } })
  const runOurs = (name: string): ImportTurn => {
    return [`plant-store import, ${name}`, () => plantStore('import', file(name))]
  }
  const turns: readonly ImportTurn[] = [
    ["sqlite3's .import, CSV", runSqlite],
    ...['plants.csv', 'plants.ndjson', 'scattered.ndjson'].map(runOurs),
  ]
  const runs: ImportRun[][] = turns.map(() => [])
  for (let round = 1; round <= rounds; round++) {
    for (const [row, [title, run]] of turns.entries()) {
      for (const suffix of ['', '-wal', '-shm']) {
        rmSync(store + suffix, { force: true })
      }
      // Creates the tables.
      await plantStore('import', '/dev/null').ended
      const result = await timed(run())
      if (countPlants(store) !== plantsInFile) {
        throw new Error(`${title}: plants are missing`)
      }
      runs[row]?.push(result)
      console.error(`${title}: ${formatDecimal(result.seconds)} s`)
    }
  }
  const secondsOf = (row: number) => runs[row]?.map(run => run.seconds) ?? []
  const rows = turns.map(([title], row) => {
    const seconds = secondsOf(row)
    const mebibytes = runs[row]?.map(run => run.mebibytes) ?? []
    return [
      title,
      formatDecimal(median(seconds)),
      row === 0 ? '' : formatRatio(medianRatio(seconds, secondsOf(0))),
      formatInteger(Math.max(...mebibytes)),
    ]
  })
  const words = `${formatInteger(plantsInFile)} plants into an empty store, medians of ${rounds}:`
  const columns = ['', 's', 'ours / sqlite3', 'peak MiB']
  return {
    title: 'Import',
    text: `${words}\n\n${table(columns, rows)}`,
  }
}

async function timed(program: Program): Promise<ImportRun> {
  const startedMs = performance.now()
  let peak = 0
  const watch = setInterval(() => {
    peak = Math.max(peak, peakMebibytes(program.pid))
  }, 50)
  const ending = await program.ended
  clearInterval(watch)
  if (ending !== 0) {
    throw new Error(`ended with ${ending}: ${program.errors()}`)
  }
  return { seconds: (performance.now() - startedMs) / 1000, mebibytes: peak }
}

async function batch({ plantsInFile, warmUpSeconds, ...effort }: Effort) {
  const rounds = Math.min(effort.rounds, 3)
  using folder = temporaryFolder()
  const [single, ...batches] = [
    'single creates, 64 connections',
    'a batch, ids in a row',
    'a batch, scattered ids',
  ]
  const rates = new Map<string, number[]>(
    [single as string, ...batches].map(title => [title, []]),
  )
  for (let round = 1; round <= rounds; round++) {
    await using running = await start(ours)
    await measure(running, { request: 'create', connections: 64 }, warmUpSeconds)
    rates
      .get(single as string)
      ?.push(
        (await measure(running, { request: 'create', connections: 64 }, 3)).perSecond,
      )
    for (const [index, title] of batches.entries()) {
      const file = join(folder.path, title)
      if (round === 1) {
        await writeLines(file, plantsInFile, ndjson(index === 0 ? inARow : scattered))
      }
      await using empty = await start(ours)
      const startedMs = performance.now()
      await send(empty, file, plantsInFile)
      const seconds = (performance.now() - startedMs) / 1_000
      rates.get(title)?.push(plantsInFile / seconds)
    }
  }
  const of = (title = '') => rates.get(title) ?? []
  const rows = [...rates.keys()].map(title => [
    title,
    formatInteger(median(of(title))),
    title === single ? '' : formatRatio(medianRatio(of(title), of(single))),
  ])
  const words = `${formatInteger(plantsInFile)} plants in one request to an empty store, medians of ${rounds}:`
  const columns = ['', 'a second', 'batch / single']
  return {
    title: 'Many plants in one request',
    text: `${words}\n\n${table(columns, rows)}`,
  }
}

async function send({ url }: Running, file: string, plants: number): Promise<void> {
  const headers = {
    authorization: `Bearer ${token}`,
    'content-type': 'application/x-ndjson',
  }
  const outgoing = request(`${url}/plants/batch`, { method: 'POST', headers })
  const answered = new Promise<Readable>((resolve, reject) => {
    outgoing.on('response', resolve).on('error', reject)
  })
  await pipeline(createReadStream(file, { highWaterMark: 256 * 1024 }), outgoing)
  const { created } = (await json(await answered)) as { created?: number }
  if (created !== plants) {
    throw new Error(`the batch created ${created} plants, not ${plants}`)
  }
}

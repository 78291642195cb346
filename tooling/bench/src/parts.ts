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
import { contestants, ours, type Running, start, token } from './contestants.ts'
import { type Load, type Measured, measure, peakMebibytes } from './load.ts'
import { countPlants, writeLines } from './plants.ts'
import { formatDecimal, formatInteger, median, ratioOf, table } from './table.ts'

/** The time for the measurements. */
export interface Effort {
  readonly rounds: number
  /** V8 compiles for some 15 seconds under load. */
  readonly warmUpSeconds: number
  readonly plantsInFile: number
}

/** A part of the benchmark, with one table. */
export interface Part {
  /** Its heading on the page. */
  readonly title: string
  /** Measures, and returns what stands below the heading. */
  run(effort: Effort): Promise<string>
}

const storedPlants = 100_000

export const parts: Readonly<Record<string, Part>> = {
  creates: { title: 'Creates', run: effort => compare(effort, 'create') },
  reads: { title: 'Reads by id', run: effort => compare(effort, '/plants/%s') },
  pages: {
    title: 'Pages of 100',
    run: effort => compare(effort, '/plants?limit=100&after=%s'),
  },
  fsyncs: { title: 'Fsyncs', run: countFsyncs },
  import: { title: 'Import', run: importFiles },
  batch: { title: 'Many plants in one request', run: sendBatches },
}

/** Measures contestants in turns, so that noise affects all of them alike. */
async function compare(effort: Effort, asked: Load['request']): Promise<string> {
  // The durability modes differ only in writes, so reads are measured in one of them.
  const [compared, plants] =
    asked === 'create' ? [contestants, 0] : [contestants.slice(0, 3), storedPlants]
  await using stack = new AsyncDisposableStack()
  const running: Running[] = []
  for (const contestant of compared) {
    running.push(stack.use(await start(contestant, plants)))
  }
  for (const one of running) {
    await measure(one, { request: asked, connections: 64 }, effort.warmUpSeconds)
  }

  const rows: string[][] = []
  for (const connections of [1, 64]) {
    const measured = running.map((): Measured[] => [])
    for (let round = 1; round <= effort.rounds; round++) {
      for (const [index, one] of running.entries()) {
        measured[index]?.push(await measure(one, { request: asked, connections }))
      }
      console.error(`${asked}, ${connections} connections: round ${round} is measured`)
    }
    const titles = running.map(({ title }) => title)
    rows.push(...rowsOf(titles, `${connections}`, measured))
  }
  const head = ['a second', 'ours / theirs', 'p50 ms', 'p99 ms', 'processor µs']
  return table(['', 'connections', ...head], rows)
}

/** Returns a row for each contestant. The first is ours. */
function rowsOf(
  titles: readonly string[],
  connections: string,
  measured: readonly (readonly Measured[])[],
): string[][] {
  const shown = measured.map(results => {
    const of = (name: keyof Measured) => median(results.map(result => result[name]))
    const times = [of('p50Ms'), of('p99Ms'), of('processorMicros')]
    return [formatInteger(of('perSecond')), ...times.map(formatDecimal)] as const
  })
  const [ourRate = ''] = shown[0] ?? []
  return shown.map(([rate, ...times], index) => {
    const ratio = index === 0 ? '' : ratioOf(ourRate, rate)
    return [`${titles[index]}`, connections, rate, ratio, ...times]
  })
}

/** @throws Error if a single client got an answer without an fsync of its own */
async function countFsyncs(): Promise<string> {
  await using running = await start(ours)
  const rows: string[][] = []
  for (const connections of [1, 64]) {
    const tracer = await trace(running.server.pid)
    if (tracer === undefined) {
      throw new Error('strace may not attach to the server')
    }
    const { requests } = await measure(running, { request: 'create', connections })
    // An interrupted call has a second line, which says "resumed" and names no file.
    const { length: fsyncs } = (await tracer.detach()).filter(call =>
      / (fsync|fdatasync)\(\d+<[^>]*\.db/.test(call),
    )
    if (connections === 1 && fsyncs < requests) {
      throw new Error(`${requests} creates one after another had ${fsyncs} fsyncs`)
    }
    const counts = [connections, requests, fsyncs].map(formatInteger)
    rows.push([...counts, formatDecimal(requests / fsyncs)])
  }
  const words =
    'Counted with strace, which slows the server down. A single client waits for an fsync each time.\nMany share theirs.'
  const head = ['connections', 'creates', 'fsyncs', 'creates per fsync']
  return `${words}\n\n${table(head, rows)}`
}

const inARow = (number: number) => BigInt(number)
const scattered = (number: number) =>
  BigInt.asIntN(64, BigInt(number) * 0x9e3779b97f4a7c15n)
const ndjson = (idOf: (number: number) => bigint) => (number: number) =>
  `{"id":${idOf(number)},"name":"Plant ${number}","tag":"tag-${number % 500}"}`
// SQLite's shell gets the version of each row too, because only our import adds it.
const csv = (number: number) => `${number},Plant ${number},tag-${number % 500}`

async function importFiles({ plantsInFile, ...effort }: Effort): Promise<string> {
  const rounds = Math.min(effort.rounds, 3)
  using folder = temporaryFolder()
  const at = (name: string) => join(folder.path, name)
  const lines: Readonly<Record<string, (number: number) => string>> = {
    'rows.csv': number => `${csv(number)},${number}`,
    'plants.csv': number => (number === 0 ? 'id,name,tag' : csv(number)),
    'plants.ndjson': ndjson(inARow),
    'scattered.ndjson': ndjson(scattered),
  }
  for (const [name, line] of Object.entries(lines)) {
    await writeLines(at(name), name === 'plants.csv' ? 0 : 1, plantsInFile, line)
  }
  const store = at('store.db')
  const { PATH } = process.env
  const insert = (name: string) =>
    startCommand(['import', name], { databaseUrl: `file:${store}` })
  const shell = ['pragma synchronous = full', `.import --csv ${at('rows.csv')} plants`]
  const turns: readonly (readonly [title: string, run: () => Program])[] = [
    [
      "sqlite3's .import, CSV",
      () => launch(['sqlite3', '-bail', store, ...shell], { environment: { PATH } }),
    ],
    ...['plants.csv', 'plants.ndjson', 'scattered.ndjson'].map(
      name => [`plant-store import, ${name}`, () => insert(at(name))] as const,
    ),
  ]
  const runs = turns.map((): Awaited<ReturnType<typeof time>>[] => [])
  for (let round = 1; round <= rounds; round++) {
    for (const [row, [title, run]] of turns.entries()) {
      for (const suffix of ['', '-wal', '-shm']) {
        rmSync(store + suffix, { force: true })
      }
      // Creates the tables.
      await insert('/dev/null').ended
      runs[row]?.push(await time(run()))
      if (countPlants(store) !== plantsInFile) {
        throw new Error(`${title}: plants are missing`)
      }
    }
    console.error(`import: round ${round} is measured`)
  }
  const seconds = runs.map(each => formatDecimal(median(each.map(run => run.seconds))))
  const rows = turns.map(([title], row) => [
    title,
    seconds[row] ?? '',
    row === 0 ? '' : ratioOf(seconds[row] ?? '', seconds[0] ?? ''),
    formatInteger(Math.max(...(runs[row] ?? []).map(run => run.mebibytes))),
  ])
  const words = `${formatInteger(plantsInFile)} plants into an empty store, medians of ${rounds}:`
  return `${words}\n\n${table(['', 's', 'ours / sqlite3', 'peak MiB'], rows)}`
}

async function time(program: Program) {
  const startedMs = performance.now()
  let mebibytes = 0
  const watch = setInterval(() => {
    mebibytes = Math.max(mebibytes, peakMebibytes(program.pid))
  }, 50)
  const ending = await program.ended
  clearInterval(watch)
  if (ending !== 0) {
    throw new Error(`ended with ${ending}: ${program.errors()}`)
  }
  return { seconds: (performance.now() - startedMs) / 1_000, mebibytes }
}

async function sendBatches({ plantsInFile, warmUpSeconds, ...effort }: Effort) {
  const rounds = Math.min(effort.rounds, 3)
  using folder = temporaryFolder()
  const single: number[] = []
  const batches = [
    { title: 'a batch, ids in a row', idOf: inARow, rates: [] as number[] },
    { title: 'a batch, scattered ids', idOf: scattered, rates: [] as number[] },
  ]
  for (let round = 1; round <= rounds; round++) {
    await using running = await start(ours)
    const load: Load = { request: 'create', connections: 64 }
    await measure(running, load, warmUpSeconds)
    single.push((await measure(running, load, 3)).perSecond)
    for (const { title, idOf, rates } of batches) {
      const file = join(folder.path, title)
      await writeLines(file, 1, plantsInFile, ndjson(idOf))
      await using empty = await start(ours)
      const startedMs = performance.now()
      await send(empty, file, plantsInFile)
      rates.push((plantsInFile / (performance.now() - startedMs)) * 1_000)
    }
  }
  const singleRate = formatInteger(median(single))
  const rows = batches.map(({ title, rates }) => {
    const rate = formatInteger(median(rates))
    return [title, rate, ratioOf(rate, singleRate)]
  })
  const words = `${formatInteger(plantsInFile)} plants in one request to an empty store, medians of ${rounds}:`
  const first = ['single creates, 64 connections', singleRate, '']
  return `${words}\n\n${table(['', 'a second', 'batch / single'], [first, ...rows])}`
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

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import {
  launch,
  type Program,
  startCommand,
  temporaryFolder,
  trace,
} from '@plant-store/harness'
import { contestants, ours, type Running, start } from './contestants.ts'
import { type Load, type Measured, measure } from './load.ts'
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
  const runs = turns.map((): number[] => [])
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
  const seconds = runs.map(each => formatDecimal(median(each)))
  const rows = turns.map(([title], row) => [
    title,
    seconds[row] ?? '',
    row === 0 ? '' : ratioOf(seconds[row] ?? '', seconds[0] ?? ''),
  ])
  const words = `${formatInteger(plantsInFile)} plants into an empty store, medians of ${rounds}:`
  return `${words}\n\n${table(['', 's', 'ours / sqlite3'], rows)}`
}

/** Returns the seconds until a program ends. */
async function time(program: Program): Promise<number> {
  const startedMs = performance.now()
  const ending = await program.ended
  if (ending !== 0) {
    throw new Error(`ended with ${ending}: ${program.errors()}`)
  }
  return (performance.now() - startedMs) / 1_000
}

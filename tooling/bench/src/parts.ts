import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { launch, type Program, temporaryFolder, trace } from '@plant-store/harness'
import { contestants, ours, start } from './contestants.ts'
import { type Load, type Measured, measure } from './load.ts'
import { countPlants, startImport, toLine, writeLines } from './plants.ts'
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

/**
 * Measures each in turn, so that noise affects all of them alike. Resolves to the results
 * of each.
 */
async function inTurns<Measurable, Result>(
  rounds: number,
  all: readonly Measurable[],
  measureOne: (one: Measurable) => Promise<Result>,
): Promise<Result[][]> {
  const results = all.map((): Result[] => [])
  for (let round = 1; round <= rounds; round++) {
    for (const [index, one] of all.entries()) {
      results[index]?.push(await measureOne(one))
    }
    console.error(`round ${round} of ${rounds} is measured`)
  }
  return results
}

async function compare(effort: Effort, request: Load['request']): Promise<string> {
  // The durability modes differ only in writes, so reads are measured in one of them.
  const [compared, plants] =
    request === 'create' ? [contestants, 0] : [contestants.slice(0, 3), storedPlants]
  await using stack = new AsyncDisposableStack()
  const running = []
  for (const contestant of compared) {
    running.push(stack.use(await start(contestant, plants)))
  }
  for (const one of running) {
    await measure(one, { request, connections: 64 }, effort.warmUpSeconds)
  }

  const titles = running.map(({ title }) => title)
  const rows: string[][] = []
  for (const connections of [1, 64]) {
    const measured = await inTurns(effort.rounds, running, one =>
      measure(one, { request, connections }),
    )
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
  const medians = (name: keyof Measured) =>
    measured.map(results => median(results.map(result => result[name])))
  const rates = medians('perSecond').map(formatInteger)
  const times = (['p50Ms', 'p99Ms', 'processorMicros'] as const).map(name =>
    medians(name).map(formatDecimal),
  )
  return titles.map((title, row) => [
    ...[title, connections, ...rates.slice(row, row + 1), ratioOf(rates, 0, row)],
    ...times.map(each => `${each[row]}`),
  ])
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

const scattered = (number: number) =>
  BigInt.asIntN(64, BigInt(number) * 0x9e3779b97f4a7c15n)
const csv = (number: number) => `${number},Plant ${number},tag-${number % 500}`
/** The lines of each file by their number. */
const files: Readonly<Record<string, (number: number) => string>> = {
  // SQLite's shell gets the version of each row too, because only our import adds it.
  'rows.csv': number => `${csv(number + 1)},${number}`,
  'plants.csv': number => (number === 0 ? 'id,name,tag' : csv(number)),
  'plants.ndjson': number => toLine(number, number, 500),
  'scattered.ndjson': number => toLine(scattered(number), number, 500),
}

async function importFiles({ plantsInFile, ...effort }: Effort): Promise<string> {
  const rounds = Math.min(effort.rounds, 3)
  using folder = temporaryFolder()
  const at = (name: string) => join(folder.path, name)
  const store = at('store.db')
  for (const [name, line] of Object.entries(files)) {
    writeLines(at(name), plantsInFile + (name === 'plants.csv' ? 1 : 0), line)
  }
  const { PATH } = process.env
  const importOne = async (name: string) => {
    for (const suffix of ['', '-wal', '-shm']) {
      rmSync(store + suffix, { force: true })
    }
    // Creates the tables.
    await startImport(store, '/dev/null').ended
    const shell = ['pragma synchronous = full', `.import --csv ${at(name)} plants`]
    const seconds = await time(
      name === 'rows.csv'
        ? launch(['sqlite3', '-bail', store, ...shell], { environment: { PATH } })
        : startImport(store, at(name)),
    )
    if (countPlants(store) !== plantsInFile) {
      throw new Error(`${name}: plants are missing`)
    }
    return seconds
  }
  const names = Object.keys(files)
  const measured = await inTurns(rounds, names, importOne)
  const seconds = measured.map(each => formatDecimal(median(each)))
  const rows = names.map((name, row) => [
    row === 0 ? "sqlite3's .import, CSV" : `plant-store import, ${name}`,
    ...[...seconds.slice(row, row + 1), ratioOf(seconds, row, 0)],
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

import { join } from 'node:path'
import { temporaryFolder, trace } from '@plant-store/harness'
import { contestants, ours, start } from './contestants.ts'
import { type Load, type Measured, measure } from './load.ts'
import { countPlants, importFile, run, toLine, writeLines } from './plants.ts'
import { formatDecimal, formatInteger, median, ratioOf, table } from './table.ts'

/** The time for the measurements. */
export interface Effort {
  /** An odd number. */
  readonly rounds: number
  /** V8 compiles for some 15 seconds under load. */
  readonly warmUpSeconds: number
  readonly plantsInFile: number
}

const storedPlants = 100_000

/**
 * The parts of the benchmark, each with one table: its heading on the page, and what
 * measures it and returns the text below.
 */
export const parts = {
  creates: { title: 'Creates', run: (effort: Effort) => compare(effort, 'create') },
  reads: { title: 'Reads by id', run: (effort: Effort) => compare(effort, '/plants/%s') },
  pages: {
    title: 'Pages of 100',
    run: (effort: Effort) => compare(effort, '/plants?limit=100&after=%s'),
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
) {
  const results = new Map(all.map(one => [one, [] as Result[]]))
  for (let round = 1; round <= rounds; round++) {
    for (const [one, ofOne] of results) {
      ofOne.push(await measureOne(one))
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

  const rows: string[][] = []
  for (const connections of [1, 64]) {
    const measured = await inTurns(effort.rounds, running, one =>
      measure(one, { request, connections }),
    )
    let ourRate: string | undefined
    for (const [{ title }, results] of measured) {
      const medianOf = (name: keyof Measured) => median(results.map(each => each[name]))
      const rate = formatInteger(medianOf('perSecond'))
      const ratio = ourRate === undefined ? '' : ratioOf(ourRate, rate)
      const times = (['p50Ms', 'p99Ms', 'processorMicros'] as const).map(medianOf)
      rows.push([title, `${connections}`, rate, ratio, ...times.map(formatDecimal)])
      ourRate ??= rate
    }
  }
  const head = ['a second', 'ours / theirs', 'p50 ms', 'p99 ms', 'processor µs']
  return table(['', 'connections', ...head], rows)
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
  for (const [name, line] of Object.entries(files)) {
    writeLines(at(name), plantsInFile + (name === 'plants.csv' ? 1 : 0), line)
  }
  const importOne = async (name: string) => {
    using place = temporaryFolder()
    const store = join(place.path, 'store.db')
    // Creates the tables.
    await importFile(store, '/dev/null')
    const shell = ['pragma synchronous = full', `.import --csv ${at(name)} plants`]
    const startedMs = performance.now()
    await (name === 'rows.csv'
      ? run('sqlite3', ['-bail', store, ...shell])
      : importFile(store, at(name)))
    const seconds = (performance.now() - startedMs) / 1_000
    if (countPlants(store) !== plantsInFile) {
      throw new Error(`${name}: plants are missing`)
    }
    return seconds
  }
  const measured = await inTurns(rounds, Object.keys(files), importOne)
  const rows: string[][] = []
  let shellSeconds: string | undefined
  for (const [name, results] of measured) {
    const seconds = formatDecimal(median(results))
    rows.push(
      shellSeconds === undefined
        ? ["sqlite3's .import, CSV", seconds, '']
        : [`plant-store import, ${name}`, seconds, ratioOf(seconds, shellSeconds)],
    )
    shellSeconds ??= seconds
  }
  const words = `${formatInteger(plantsInFile)} plants into an empty store, medians of ${rounds}:`
  return `${words}\n\n${table(['', 's', 'ours / sqlite3'], rows)}`
}

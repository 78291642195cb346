import assert from 'node:assert/strict'
import { join } from 'node:path'
import { temporaryFolder, trace } from '@plant-store/harness'
import { contestants, start } from './contestants.ts'
import { type Measured, measure } from './load.ts'
import type { Effort } from './page.ts'
import { countPlants, importFile, run, toLine, writeLines } from './plants.ts'
import { formatDecimal, formatInteger, median, ratioOf, table } from './table.ts'

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

async function compare(effort: Effort, request: string) {
  // The durability modes differ only in writes, so reads are measured in one of them.
  const [compared, plants] =
    request === 'create' ? [contestants, 0] : [contestants.slice(0, 3), storedPlants]
  await using stack = new AsyncDisposableStack()
  const running = []
  for (const contestant of compared) {
    const one = stack.use(await start(contestant, plants))
    await measure(one, request, 64, effort.warmUpSeconds)
    running.push(one)
  }

  const head = ['a second', 'ours / theirs', 'p50 ms', 'p99 ms', 'processor µs']
  const rows = [['', 'connections', ...head]]
  for (const connections of [1, 64]) {
    const measured = await inTurns(effort.rounds, running, one =>
      measure(one, request, connections),
    )
    let ourRate = ''
    for (const [{ title }, results] of measured) {
      const medianOf = (name: keyof Measured) => median(results.map(each => each[name]))
      const rate = formatInteger(medianOf('perSecond'))
      const ratio = ourRate && ratioOf(ourRate, rate)
      const times = (['p50Ms', 'p99Ms', 'processorMicros'] as const).map(medianOf)
      rows.push([title, `${connections}`, rate, ratio, ...times.map(formatDecimal)])
      ourRate ||= rate
    }
  }
  return table(rows)
}

/** @throws Error if a single client got an answer without an fsync of its own */
async function countFsyncs() {
  await using running = await start(contestants[0])
  const rows = [['connections', 'creates', 'fsyncs', 'creates per fsync']]
  for (const connections of [1, 64]) {
    const tracer = await trace(running.server.pid)
    assert(tracer, 'strace may not attach to the server')
    const { requests } = await measure(running, 'create', connections)
    // An interrupted call has a second line, which says "resumed" and names no file.
    const { length: fsyncs } = (await tracer.detach()).filter(call =>
      / (fsync|fdatasync)\(\d+<[^>]*\.db/.test(call),
    )
    assert(
      connections > 1 || fsyncs >= requests,
      `${requests} creates one after another had ${fsyncs} fsyncs`,
    )
    const counts = [connections, requests, fsyncs].map(formatInteger)
    rows.push([...counts, formatDecimal(requests / fsyncs)])
  }
  return `Counted with strace, which slows the server down. A single client waits for an fsync each time.
Many share theirs.

${table(rows)}`
}

const scattered = (number: number) =>
  BigInt.asIntN(64, BigInt(number) * 0x9e3779b97f4a7c15n)
const csv = (number: number) => `${number},Plant ${number},tag-${number % 500}`
/** The lines of each file by their number. */
const files: Readonly<Record<string, (number: number) => string>> = {
  // SQLite's shell gets the version of each row too, because only our import adds it.
  'rows.csv': number => `${csv(number)},${number}`,
  'plants.csv': number => (number === 0 ? `id,name,tag\n${csv(0)}` : csv(number)),
  'plants.ndjson': number => toLine(number, number, 500),
  'scattered.ndjson': number => toLine(scattered(number), number, 500),
}

async function importFiles({ plantsInFile }: Effort) {
  using folder = temporaryFolder()
  const at = (name: string) => join(folder.path, name)
  for (const [name, line] of Object.entries(files)) {
    writeLines(at(name), plantsInFile, line)
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
    assert.equal(countPlants(store), plantsInFile, `${name}: plants are missing`)
    return seconds
  }
  const rounds = 3
  const measured = await inTurns(rounds, Object.keys(files), importOne)
  const rows = [['', 's', 'ours / sqlite3']]
  let shellSeconds = ''
  for (const [name, results] of measured) {
    const seconds = formatDecimal(median(results))
    const title =
      name === 'rows.csv' ? "sqlite3's .import, CSV" : `plant-store import, ${name}`
    rows.push([title, seconds, shellSeconds && ratioOf(seconds, shellSeconds)])
    shellSeconds ||= seconds
  }
  const plants = formatInteger(plantsInFile)
  return `${plants} plants into an empty store, medians of ${rounds}:\n\n${table(rows)}`
}

import { execFile } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type Running, type Server, token } from './contestants.ts'
import { processorSeconds, residentMebibytes } from './process-figures.ts'

export interface Load {
  readonly title: string
  /** Creates plants, or gets this path with the id of a stored plant for `%s`. */
  readonly request: 'create' | `/${string}`
  readonly connections: number
}

export interface Measured {
  readonly requests: number
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** The server's processor time for a request. */
  readonly processorMicros: number
  /** Right after the load. */
  readonly mebibytes: number
}

/** Thread `index` of wrk creates plants from `next + index * 1,000,000`, so no plant is created twice. */
const numbersPerLoad = 10_000_000
let next = numbersPerLoad

/**
 * Loads the servers of a contestant, with equal shares of the connections.
 *
 * @throws Error if an answer is missing or not 200, or if answered creates are not stored
 */
export async function measure(running: Running, load: Load, seconds: number): Promise<Measured> {
  const { contestant, servers, store } = running
  const pids = servers.map(server => server.pid)
  await store.flush()
  const stored = await store.count()
  const spent = sum(pids.map(processorSeconds))
  const runs = await Promise.all(servers.map(server => runWrk(server, load, running, seconds)))
  const requests = sum(runs.map(run => run.requests))
  const measured = {
    requests,
    perSecond: sum(runs.map(run => (run.requests / run.microseconds) * 1e6)),
    p50Ms: Math.max(...runs.map(run => run.p50)) / 1_000,
    p99Ms: Math.max(...runs.map(run => run.p99)) / 1_000,
    processorMicros: ((sum(pids.map(processorSeconds)) - spent) / requests) * 1e6,
    mebibytes: sum(pids.map(residentMebibytes)),
  }
  for (const server of servers) server.assertRunning()
  const fail = (what: string) => {
    throw new Error(`${contestant.title}, ${load.title}: ${what}`)
  }
  const [refused, broken] = [sum(runs.map(run => run.refused)), sum(runs.map(run => run.broken))]
  if (requests === 0) fail('no answer at all')
  if (refused > 0) fail(`${refused} answers were not 200`)
  if (broken > 0) fail(`${broken} requests got no answer`)
  const created = (await store.count()) - stored
  if (load.request === 'create' && contestant.promised !== 'nothing kept' && created < requests)
    fail(`${requests} creates were answered with 200, and ${created} plants stored`)
  return measured
}

interface WrkRun {
  readonly requests: number
  readonly microseconds: number
  /** Microseconds. */
  readonly p50: number
  readonly p99: number
  readonly refused: number
  readonly broken: number
}

/** wrk needs less of the machine than a generator in JavaScript. */
async function runWrk(
  server: Server,
  load: Load,
  { servers, store }: Running,
  seconds: number,
): Promise<WrkRun> {
  const connections = load.connections / servers.length
  const threads = Math.min(connections, Math.ceil(availableParallelism() / 2), 4)
  next += numbersPerLoad
  const { stdout } = await promisify(execFile)(
    'wrk',
    [
      ...['-t', threads, '-c', connections, '-d', `${seconds}s`, '--timeout', '10s'],
      ...['-s', fileURLToPath(new URL('./wrk.lua', import.meta.url)), server.url, '--'],
      ...[load.request, store.plants, next, token],
    ].map(String),
    { timeout: (seconds + 30) * 1_000, killSignal: 'SIGKILL' },
  )
  return JSON.parse(stdout.slice(stdout.lastIndexOf('\n{')))
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)

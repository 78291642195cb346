import type { Socket } from 'node:net'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'
import type { AnsweredRequest } from '@plant-store/http'
import type { Commit } from '@plant-store/persistence'

/** What one thread has counted since it began. Plain data: it crosses to the thread that adds all of them up. */
export interface ThreadFigures {
  readonly requests: readonly RequestFigures[]
  readonly commitRows: Distribution
  readonly commitSeconds: Distribution
  /** Changes without an outcome, at the moment. */
  readonly waitingRows: number
  /** Open, at the moment. */
  readonly connections: number
  readonly heapBytes: number
  /** How much later than planned the event loop came round, since the last time that it was asked for. */
  readonly loopLagSeconds: { readonly mean: number; readonly p99: number; readonly max: number }
}

interface RequestFigures {
  readonly method: string
  readonly route: string
  readonly status: number
  readonly seconds: Distribution
}

/** How many values were at most each of the bounds, and above the one before it; the last count is of those above all. */
interface Distribution {
  readonly bounds: readonly number[]
  readonly counts: number[]
  sum: number
}

const requestSeconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const commitSeconds = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1]
const commitRows = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]

export interface Metrics {
  readonly onAnswer: (answered: AnsweredRequest) => void
  readonly onCommit: (commit: Commit) => void
  readonly onConnection: (socket: Socket) => void
  /** @param waitingRows see {@link ThreadFigures} */
  read(waitingRows: number): ThreadFigures
}

const lagResolutionMs = 20

/** Counts what happens in this thread. */
export function createMetrics(): Metrics {
  const requests = new Map<string, RequestFigures>()
  let last: RequestFigures | undefined
  const rows = distribution(commitRows)
  const seconds = distribution(commitSeconds)
  let connections = 0
  const lag = monitorEventLoopDelay({ resolution: lagResolutionMs })
  lag.enable()

  return {
    onAnswer({ method = '', route = '', status, ms }) {
      // Most requests are like the one before, and need not be looked up.
      if (last?.status !== status || last.route !== route || last.method !== method) {
        const key = `${method} ${route} ${status}`
        last = requests.get(key) ?? { method, route, status, seconds: distribution(requestSeconds) }
        requests.set(key, last)
      }
      observe(last.seconds, ms / 1000)
    },
    onCommit(commit) {
      observe(rows, commit.changes)
      observe(seconds, commit.ms / 1000)
    },
    onConnection(socket) {
      connections++
      socket.once('close', () => connections--)
    },
    read(waitingRows) {
      const late = (nanoseconds: number) => Math.max(0, (nanoseconds - lagResolutionMs * 1e6) / 1e9) || 0
      const loopLagSeconds = { mean: late(lag.mean), p99: late(lag.percentile(99)), max: late(lag.max) }
      lag.reset()
      return {
        requests: [...requests.values()],
        commitRows: rows,
        commitSeconds: seconds,
        waitingRows,
        connections,
        heapBytes: getHeapStatistics().used_heap_size,
        loopLagSeconds,
      }
    },
  }
}

function distribution(bounds: readonly number[]): Distribution {
  return { bounds, counts: new Array<number>(bounds.length + 1).fill(0), sum: 0 }
}

function observe(distribution: Distribution, value: number): void {
  const { bounds, counts } = distribution
  let at = 0
  while (at < bounds.length && value > (bounds[at] as number)) at++
  counts[at] = (counts[at] as number) + 1
  distribution.sum += value
}

/** What is known of the whole process. */
export interface ProcessFigures {
  readonly version: string
  /** Why the store fails; `undefined` when it works. */
  readonly failure: string | undefined
  /** Of the store's files; `undefined` where it is in a database, which several processes share and others watch. */
  readonly storeBytes: number | undefined
}

/**
 * The figures of a process in the text format of Prometheus, version 0.0.4: what its threads have counted added up,
 * and what the system knows of it.
 *
 * @param threads by their number, of which 0 is the main one; `undefined` is one that has said nothing yet
 */
export function writeMetrics(
  threads: readonly (ThreadFigures | undefined)[],
  { version, failure, storeBytes }: ProcessFigures,
): string {
  const figures = threads.filter(each => each !== undefined)
  const requests = addUpRequests(figures)
  const all = (name: 'commitRows' | 'commitSeconds') => addUp(figures.map(each => each[name]))
  const perThread = (value: (figures: ThreadFigures) => number) =>
    threads.flatMap((each, thread) => (each === undefined ? [] : [sample('', { thread }, value(each))]))
  const { user, system } = process.cpuUsage()

  return [
    metric('plant_store_build_info', 'gauge', 'Always 1; the version is that of the program.', [
      sample('', { version }, 1),
    ]),
    metric('plant_store_ready', 'gauge', 'Whether the store works: 1 or 0.', [
      sample('', {}, failure === undefined ? 1 : 0),
    ]),
    metric('plant_store_failure', 'gauge', 'Why the store does not work; without a sample when it does.', [
      ...(failure === undefined ? [] : [sample('', { reason: failure }, 1)]),
    ]),
    metric('plant_store_size_bytes', 'gauge', 'The files of the store, its log included; SQLite only.', [
      ...(storeBytes === undefined ? [] : [sample('', {}, storeBytes)]),
    ]),
    metric('http_connections_open', 'gauge', 'Connections of clients.', [
      sample('', {}, sum(figures.map(({ connections }) => connections))),
    ]),
    metric(
      'http_requests_total',
      'counter',
      'Requests answered, by the pattern of the path and the status.',
      [...requests.map(({ seconds, ...labels }) => sample('', labels, total(seconds)))],
    ),
    metric(
      'http_request_duration_seconds',
      'histogram',
      'From the arrival of the header section until the answer was handed over.',
      requests.flatMap(({ seconds, ...labels }) => histogram(seconds, labels)),
    ),
    metric('plant_store_waiting_changes', 'gauge', 'Changes that are not durable yet.', [
      sample('', {}, sum(figures.map(({ waitingRows }) => waitingRows))),
    ]),
    metric('plant_store_commit_changes', 'histogram', 'Changes that shared a commit.', [
      ...histogram(all('commitRows')),
    ]),
    metric(
      'plant_store_commit_seconds',
      'histogram',
      'From the beginning of a commit until it was durable.',
      [...histogram(all('commitSeconds'))],
    ),
    metric(
      'nodejs_eventloop_lag_mean_seconds',
      'gauge',
      'How late the event loop came round, since the last time that this was asked for.',
      perThread(({ loopLagSeconds }) => loopLagSeconds.mean),
    ),
    metric('nodejs_eventloop_lag_p99_seconds', 'gauge', 'As above, 99 of 100 were below it.', [
      ...perThread(({ loopLagSeconds }) => loopLagSeconds.p99),
    ]),
    metric('nodejs_eventloop_lag_max_seconds', 'gauge', 'As above, the latest.', [
      ...perThread(({ loopLagSeconds }) => loopLagSeconds.max),
    ]),
    metric('nodejs_heap_used_bytes', 'gauge', 'JavaScript values and what is left of them.', [
      ...perThread(({ heapBytes }) => heapBytes),
    ]),
    metric('process_cpu_user_seconds_total', 'counter', 'Processor time in the program itself.', [
      sample('', {}, user / 1e6),
    ]),
    metric('process_cpu_system_seconds_total', 'counter', 'Processor time in the system on its behalf.', [
      sample('', {}, system / 1e6),
    ]),
    metric('process_resident_memory_bytes', 'gauge', 'Memory that the process holds.', [
      sample('', {}, process.memoryUsage.rss()),
    ]),
    metric('process_start_time_seconds', 'gauge', 'When the process began, since 1970.', [
      sample('', {}, Math.round(performance.timeOrigin) / 1000),
    ]),
  ].join('')
}

function addUpRequests(figures: readonly ThreadFigures[]): RequestFigures[] {
  const byLabels = Map.groupBy(
    figures.flatMap(({ requests }) => requests),
    ({ method, route, status }) => `${route} ${method} ${status}`,
  )
  return [...byLabels]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, same]) => ({ ...(same[0] as RequestFigures), seconds: addUp(same.map(each => each.seconds)) }))
}

function addUp(distributions: readonly Distribution[]): Distribution {
  const { bounds = [] } = distributions[0] ?? {}
  return {
    bounds,
    counts: Array.from({ length: bounds.length + 1 }, (_, at) =>
      sum(distributions.map(d => d.counts[at] ?? 0)),
    ),
    sum: sum(distributions.map(each => each.sum)),
  }
}

const sum = (values: readonly number[]) => values.reduce((so, value) => so + value, 0)
const total = ({ counts }: Distribution) => sum(counts)

type Labels = Readonly<Record<string, string | number>>

/** A sample without the name of its metric, which `metric` puts before it. */
function sample(suffix: string, labels: Labels, value: number): string {
  const pairs = Object.entries(labels).map(([name, each]) => `${name}="${escapeLabel(`${each}`)}"`)
  return `${suffix}${pairs.length > 0 ? `{${pairs.join(',')}}` : ''} ${value}\n`
}

function escapeLabel(value: string): string {
  return value.replace(/[\\"\n]/g, each => (each === '\n' ? '\\n' : `\\${each}`))
}

/** Its buckets count what is at most their bound, those of the smaller ones included. */
function histogram(figures: Distribution, labels: Labels = {}): string[] {
  let count = 0
  const buckets = [...figures.bounds, '+Inf'].map((le, at) => {
    count += figures.counts[at] ?? 0
    return sample('_bucket', { ...labels, le }, count)
  })
  return [...buckets, sample('_sum', labels, figures.sum), sample('_count', labels, count)]
}

function metric(name: string, type: string, help: string, samples: readonly string[]): string {
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${samples.map(each => `${name}${each}`).join('')}`
}

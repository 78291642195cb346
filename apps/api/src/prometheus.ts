import { AggregatorRegistry } from 'prom-client'
import manifest from '../package.json' with { type: 'json' }
import type { Distribution, ThreadFigures } from './counters.ts'

/** What is known of the whole process. */
export interface ProcessFigures {
  /** Why the store fails. `undefined` while it works. */
  readonly failure: string | undefined
  /** Of the store's files. `undefined` for a database server, which several processes share and others watch. */
  readonly storeBytes: number | undefined
}

/** The name of each metric, its type and its help text. */
const metrics = {
  plant_store_build_info: ['gauge', 'Always 1; the version is that of the program.'],
  plant_store_ready: ['gauge', 'Whether the store works: 1 or 0.'],
  plant_store_failure: ['gauge', 'Why the store does not work; without a sample when it does.'],
  plant_store_size_bytes: ['gauge', 'The files of the store, its log included; SQLite only.'],
  http_connections_open: ['gauge', 'Connections of clients.'],
  http_requests_total: ['counter', 'Requests answered, by the pattern of the path and the status.'],
  http_request_duration_seconds: ['histogram', 'From the header section to the answer.'],
  plant_store_waiting_changes: ['gauge', 'Changes that are not durable yet.'],
  plant_store_commit_changes: ['histogram', 'Changes that shared a commit.'],
  plant_store_commit_seconds: ['histogram', 'From the start of a transaction until it was durable.'],
  nodejs_eventloop_lag_mean_seconds: ['gauge', 'Mean lateness of the event loop since the last scrape.'],
  nodejs_eventloop_lag_p99_seconds: ['gauge', '99th percentile of the same.'],
  nodejs_eventloop_lag_max_seconds: ['gauge', 'Maximum of the same.'],
  nodejs_heap_used_bytes: ['gauge', 'JavaScript values, garbage included.'],
  process_cpu_user_seconds_total: ['counter', 'Processor time in the program itself.'],
  process_cpu_system_seconds_total: ['counter', 'Processor time in the system on its behalf.'],
  process_resident_memory_bytes: ['gauge', 'Memory that the process holds.'],
  process_start_time_seconds: ['gauge', 'When the process began, since 1970.'],
} as const

type Labels = Readonly<Record<string, string | number>>

/** @param metricName where it is not the name of the metric */
const sample = (value: number, labels: Labels = {}, metricName?: string) => ({ value, labels, metricName })

type Samples = Partial<Record<keyof typeof metrics, readonly ReturnType<typeof sample>[]>>

/**
 * Returns the figures of a process in the text format of Prometheus, version 0.0.4. Samples of several threads that
 * have the same labels are added up.
 *
 * @param threads by their number, where 0 is the main thread. `undefined` has not answered yet.
 */
export function writePrometheus(
  threads: readonly (ThreadFigures | undefined)[],
  figures: ProcessFigures,
): Promise<string> {
  const sources = [
    samplesOfProcess(figures),
    ...threads.map((each, thread) => (each === undefined ? {} : samplesOfThread(each, thread))),
  ]
  const all = sources.map((samples: Samples) =>
    Object.entries(metrics).map(([name, [type, help]]) => {
      const values = samples[name as keyof Samples] ?? []
      return { name, type, help, values, aggregator: 'sum' }
    }),
  )
  return AggregatorRegistry.aggregate(all).metrics()
}

function samplesOfProcess({ failure, storeBytes }: ProcessFigures): Samples {
  const { user, system } = process.cpuUsage()
  return {
    plant_store_build_info: [sample(1, { version: manifest.version })],
    plant_store_ready: [sample(failure === undefined ? 1 : 0)],
    plant_store_failure: failure === undefined ? [] : [sample(1, { reason: failure })],
    plant_store_size_bytes: storeBytes === undefined ? [] : [sample(storeBytes)],
    process_cpu_user_seconds_total: [sample(user / 1e6)],
    process_cpu_system_seconds_total: [sample(system / 1e6)],
    process_resident_memory_bytes: [sample(process.memoryUsage.rss())],
    process_start_time_seconds: [sample(Math.round(performance.timeOrigin) / 1000)],
  }
}

function samplesOfThread(figures: ThreadFigures, thread: number): Samples {
  const { requests, loopLagSeconds } = figures
  return {
    http_connections_open: [sample(figures.connections)],
    http_requests_total: requests.map(({ seconds, ...labels }) => sample(total(seconds), labels)),
    http_request_duration_seconds: requests.flatMap(({ seconds, ...labels }) =>
      histogram('http_request_duration_seconds', seconds, labels),
    ),
    plant_store_waiting_changes: [sample(figures.waitingRows)],
    plant_store_commit_changes: histogram('plant_store_commit_changes', figures.commitRows),
    plant_store_commit_seconds: histogram('plant_store_commit_seconds', figures.commitSeconds),
    nodejs_eventloop_lag_mean_seconds: [sample(loopLagSeconds.mean, { thread })],
    nodejs_eventloop_lag_p99_seconds: [sample(loopLagSeconds.p99, { thread })],
    nodejs_eventloop_lag_max_seconds: [sample(loopLagSeconds.max, { thread })],
    nodejs_heap_used_bytes: [sample(figures.heapBytes, { thread })],
  }
}

/** A bucket counts what is at most its bound, so it includes the smaller ones. */
function histogram(name: keyof typeof metrics, distribution: Distribution, labels: Labels = {}) {
  let count = 0
  const buckets = [...distribution.bounds, '+Inf'].map((le, at) => {
    count += distribution.counts[at] ?? 0
    return sample(count, { ...labels, le }, `${name}_bucket`)
  })
  return [...buckets, sample(distribution.sum, labels, `${name}_sum`), sample(count, labels, `${name}_count`)]
}

const total = ({ counts }: Distribution) => counts.reduce((sum, count) => sum + count, 0)

import type { Socket } from 'node:net'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'
import type { AnsweredRequest } from '@plant-store/http/server'
import type { Commit } from '@plant-store/persistence'

export const metrics = {
  plant_store_build_info: ['gauge', 'Always 1, labelled with the version of the program.'],
  plant_store_ready: ['gauge', 'Whether the store works: 1 or 0.'],
  plant_store_failure: ['gauge', '1, labelled with the reason, while the store fails.'],
  plant_store_size_bytes: ['gauge', 'Size of the files of a store on SQLite, its log included.'],
  http_connections_open: ['gauge', 'Open connections of clients.'],
  http_requests_total: ['counter', 'Requests answered, by method, pattern of the path and status.'],
  http_request_duration_seconds: ['histogram', 'Time from the header section of a request to its answer.'],
  plant_store_waiting_changes: ['gauge', 'Changes of the store that are not durable yet.'],
  plant_store_commit_changes: ['histogram', 'How many changes shared a commit.'],
  plant_store_commit_seconds: ['histogram', 'Time from the start of a transaction until it was durable.'],
  plant_store_announcements_waiting: ['gauge', 'New plants that wait to be delivered to a webhook.'],
  plant_store_announcements_oldest_seconds: ['gauge', 'Longest wait of a new plant for a webhook.'],
  plant_store_announcements_given_up: ['gauge', 'New plants given up after three days without a delivery.'],
  plant_store_announcements_missed_total: ['counter', 'New plants not announced: too many waited already.'],
  plant_store_deliveries_total: ['counter', 'Attempts to deliver a new plant to a webhook, by outcome.'],
  plant_store_log_lines_lost_total: ['counter', 'Lines of the log that could not be written in time.'],
  nodejs_eventloop_lag_mean_seconds: ['gauge', 'Mean delay of an event loop since the last scrape.'],
  nodejs_eventloop_lag_p99_seconds: ['gauge', '99th percentile of event loop delays since the last scrape.'],
  nodejs_eventloop_lag_max_seconds: ['gauge', 'Maximum delay of an event loop since the last scrape.'],
  nodejs_heap_used_bytes: ['gauge', 'Memory of the JavaScript values of a thread, garbage included.'],
  process_cpu_user_seconds_total: ['counter', 'Processor time that the program itself used.'],
  process_cpu_system_seconds_total: ['counter', 'Processor time that the system used for the program.'],
  process_resident_memory_bytes: ['gauge', 'Physical memory that the process uses.'],
  process_start_time_seconds: ['gauge', 'When the process started, in seconds since 1970.'],
} as const

type Labels = Readonly<Record<string, string | number>>

/** @param suffix of the metric's name */
export const sample = (value: number, labels: Labels = {}, suffix = '') => ({ value, labels, suffix })

type Sample = ReturnType<typeof sample>

/** Plain data, which threads send to the main thread. */
export type Samples = Partial<Record<keyof typeof metrics, readonly Sample[]>>

const requestSeconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const commitSeconds = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1]
const commitChanges = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]

const lagResolutionMs = 20

/**
 * Returns counters for one thread. prom-client would be too slow for every request.
 *
 * @param thread its number, 0 for the main thread
 */
export function createCounters(thread: number) {
  /** Those with the same labels together. */
  const answers = new Map<string, { readonly labels: Labels; readonly seconds: Distribution }>()
  const changes = createDistribution(commitChanges)
  const seconds = createDistribution(commitSeconds)
  let connections = 0
  const lag = monitorEventLoopDelay({ resolution: lagResolutionMs })
  lag.enable()

  return {
    onAnswer({ method = '', route = '', status, ms }: AnsweredRequest) {
      const key = `${method} ${route} ${status}`
      const alike = answers.get(key) ?? {
        labels: { method, route, status },
        seconds: createDistribution(requestSeconds),
      }
      answers.set(key, alike)
      alike.seconds.observe(ms / 1000)
    },
    onCommit(commit: Commit) {
      changes.observe(commit.changes)
      seconds.observe(commit.ms / 1000)
    },
    onConnection(socket: Socket) {
      connections++
      socket.once('close', () => connections--)
    },
    /** @param waitingChanges that are still pending */
    read(waitingChanges: number): Samples {
      const alike = [...answers.values()]
      const late = (ns: number) => [sample(Math.max(0, (ns - lagResolutionMs * 1e6) / 1e9) || 0, { thread })]
      const samples = {
        http_connections_open: [sample(connections)],
        http_requests_total: alike.map(each => sample(each.seconds.count(), each.labels)),
        http_request_duration_seconds: alike.flatMap(each => each.seconds.samples(each.labels)),
        plant_store_waiting_changes: [sample(waitingChanges)],
        plant_store_commit_changes: changes.samples(),
        plant_store_commit_seconds: seconds.samples(),
        nodejs_eventloop_lag_mean_seconds: late(lag.mean),
        nodejs_eventloop_lag_p99_seconds: late(lag.percentile(99)),
        nodejs_eventloop_lag_max_seconds: late(lag.max),
        nodejs_heap_used_bytes: [sample(getHeapStatistics().used_heap_size, { thread })],
      }
      lag.reset()
      return samples
    },
  }
}

type Distribution = ReturnType<typeof createDistribution>

/** Counts values by the smallest bound that they do not exceed. */
function createDistribution(bounds: readonly number[]) {
  const counts = new Array<number>(bounds.length + 1).fill(0)
  let sum = 0
  return {
    observe(value: number) {
      const at = bounds.findIndex(bound => value <= bound)
      const bucket = at === -1 ? bounds.length : at
      counts[bucket] = (counts[bucket] as number) + 1
      sum += value
    },
    /** Returns the samples of a histogram. */
    samples(labels: Labels = {}): readonly Sample[] {
      let count = 0
      // Prometheus buckets are cumulative.
      const buckets = [...bounds, '+Inf'].map((le, at) => {
        count += counts[at] as number
        return sample(count, { ...labels, le }, '_bucket')
      })
      return [...buckets, sample(sum, labels, '_sum'), sample(count, labels, '_count')]
    },
    count: () => counts.reduce((total, each) => total + each),
  }
}

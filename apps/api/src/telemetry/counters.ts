import type { Socket } from 'node:net'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'
import type { Commit } from '@plant-store/engine'
import type { AnsweredRequest } from '@plant-store/http/server'
import { type Labels, type Sample, type Samples, sample } from './metrics.ts'

const requestSeconds = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
]
const commitSeconds = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1,
]
const commitChanges = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]

const lagResolutionMs = 20

/**
 * Returns counters for one thread.
 *
 * @param thread its number, 0 for the main thread
 */
export function createCounters(thread: number) {
  /** Those with the same labels together. */
  const answers: { readonly labels: Labels; readonly durations: Distribution }[] = []
  const changes = createDistribution(commitChanges)
  const seconds = createDistribution(commitSeconds)
  let connections = 0
  const lag = monitorEventLoopDelay({ resolution: lagResolutionMs })
  lag.enable()

  return {
    onAnswer({ method = '', route = '', status, ms }: AnsweredRequest) {
      for (const { labels, durations } of answers) {
        if (
          labels['method'] === method &&
          labels['route'] === route &&
          labels['status'] === status
        ) {
          return durations.observe(ms / 1000)
        }
      }
      const durations = createDistribution(requestSeconds)
      durations.observe(ms / 1000)
      answers.push({ labels: { method, route, status }, durations })
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
      const late = (ns: number) => [
        sample(Math.max(0, (ns - lagResolutionMs * 1e6) / 1e9) || 0, { thread }),
      ]
      const samples = {
        http_connections_open: [sample(connections)],
        http_requests_total: answers.map(each =>
          sample(each.durations.count(), each.labels),
        ),
        http_request_duration_seconds: answers.flatMap(each =>
          each.durations.samples(each.labels),
        ),
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
      let bucket = 0
      while (bucket < bounds.length && value > (bounds[bucket] as number)) {
        bucket++
      }
      counts[bucket] = (counts[bucket] as number) + 1
      sum += value
    },
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

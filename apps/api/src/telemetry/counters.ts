import type { Socket } from 'node:net'
import { type ELDHistogram, monitorEventLoopDelay } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'
import type { Commit } from '@plant-store/engine'
import type { AnsweredRequest } from '@plant-store/http/server'
import { Distribution } from './distribution.ts'
import { type Sample, type Samples, sample } from './metrics.ts'

const requestSeconds = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
]
const commitSeconds = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1,
]
const commitChanges = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]

const lagResolutionMs = 20

/** The durations of the answers that have the same labels. */
interface Answers {
  readonly labels: Pick<AnsweredRequest, 'status'> & Record<'method' | 'route', string>
  readonly seconds: Distribution
}

/**
 * Returns what counts the figures of one thread.
 *
 * @param thread its number, 0 for the main thread
 */
export function createCounters(thread: number) {
  // A list is searched faster than a key is made of the labels.
  const answers: Answers[] = []
  const changes = new Distribution(commitChanges)
  const seconds = new Distribution(commitSeconds)
  let connections = 0
  const lag = monitorEventLoopDelay({ resolution: lagResolutionMs })
  lag.enable()

  return {
    onAnswer({ method = '', route = '', status, ms }: AnsweredRequest): void {
      for (const { labels, seconds } of answers) {
        const isAlike =
          labels.method === method && labels.route === route && labels.status === status
        if (isAlike) {
          seconds.observe(ms / 1000)
          return
        }
      }
      const first = new Distribution(requestSeconds)
      first.observe(ms / 1000)
      answers.push({ labels: { method, route, status }, seconds: first })
    },
    onCommit(commit: Commit): void {
      changes.observe(commit.changes)
      seconds.observe(commit.ms / 1000)
    },
    onConnection(socket: Socket): void {
      connections++
      socket.once('close', () => connections--)
    },
    /** @param waitingChanges the changes that are still pending */
    read(waitingChanges: number): Samples {
      return {
        http_connections_open: [sample(connections)],
        http_requests_total: answers.map(({ labels, seconds }) =>
          sample(seconds.count, labels),
        ),
        http_request_duration_seconds: answers.flatMap(({ labels, seconds }) =>
          seconds.samples(labels),
        ),
        plant_store_waiting_changes: [sample(waitingChanges)],
        plant_store_commit_changes: changes.samples(),
        plant_store_commit_seconds: seconds.samples(),
        ...readLag(lag, thread),
        nodejs_heap_used_bytes: [sample(getHeapStatistics().used_heap_size, { thread })],
      }
    },
  }
}

/**
 * Returns the delays since the last call, without the resolution that the monitor adds.
 */
function readLag(lag: ELDHistogram, thread: number): Samples {
  const delaySamples = (ns: number): readonly Sample[] => {
    const seconds = (ns - lagResolutionMs * 1e6) / 1e9
    // Without a measurement, the mean is not a number.
    const isMeasured = seconds > 0
    return [sample(isMeasured ? seconds : 0, { thread })]
  }
  const samples = {
    nodejs_eventloop_lag_mean_seconds: delaySamples(lag.mean),
    nodejs_eventloop_lag_p99_seconds: delaySamples(lag.percentile(99)),
    nodejs_eventloop_lag_max_seconds: delaySamples(lag.max),
  }
  lag.reset()
  return samples
}

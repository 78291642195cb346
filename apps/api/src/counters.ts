import type { Socket } from 'node:net'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'
import type { AnsweredRequest } from '@plant-store/http'
import type { Commit } from '@plant-store/persistence'

/** What one thread has counted since it began. Plain data, because it goes to the main thread. */
export interface ThreadFigures {
  readonly requests: readonly RequestFigures[]
  readonly commitRows: Distribution
  readonly commitSeconds: Distribution
  /** Changes without an outcome, at the moment. */
  readonly waitingRows: number
  /** Open, at the moment. */
  readonly connections: number
  readonly heapBytes: number
  /** How late the event loop was since the last call of `read`. */
  readonly loopLagSeconds: { readonly mean: number; readonly p99: number; readonly max: number }
}

export interface RequestFigures {
  readonly method: string
  readonly route: string
  readonly status: number
  readonly seconds: Distribution
}

/** `counts[i]` is how many values were at most `bounds[i]` and above the bound before it. The last counts the rest. */
export interface Distribution {
  readonly bounds: readonly number[]
  readonly counts: number[]
  sum: number
}

const requestSeconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const commitSeconds = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1]
const commitRows = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]

export interface Counters {
  readonly onAnswer: (answered: AnsweredRequest) => void
  readonly onCommit: (commit: Commit) => void
  readonly onConnection: (socket: Socket) => void
  /** @param waitingRows see {@link ThreadFigures} */
  read(waitingRows: number): ThreadFigures
}

const lagResolutionMs = 20

/** Counts what happens in this thread. */
export function createCounters(): Counters {
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
  const at = bounds.findIndex(bound => value <= bound)
  const bucket = at === -1 ? bounds.length : at
  counts[bucket] = (counts[bucket] as number) + 1
  distribution.sum += value
}

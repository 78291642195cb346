export const metrics = {
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
  plant_store_announcements_waiting: ['gauge', 'New plants that a webhook is still to hear of.'],
  plant_store_announcements_oldest_seconds: ['gauge', 'How long the oldest of them has waited.'],
  plant_store_announcements_given_up: ['gauge', 'Those that failed for three days: kept for the operator.'],
  plant_store_announcements_missed_total: ['counter', 'Those never made because too many waited.'],
  plant_store_deliveries_total: ['counter', 'Attempts to deliver, by webhook and outcome.'],
  plant_store_log_lines_lost_total: ['counter', 'Lines of the log that could not be written in time.'],
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

/** @param suffix of the metric's name */
export const sample = (value: number, labels: Labels = {}, suffix = '') => ({ value, labels, suffix })

type Sample = ReturnType<typeof sample>

/** Plain data, which threads send to the main thread. */
export type Samples = Partial<Record<keyof typeof metrics, readonly Sample[]>>

/** Counts values by the smallest bound that they do not exceed. */
export interface Distribution {
  observe(value: number): void
  count(): number
  /** Returns the samples of a histogram. */
  samples(labels?: Labels): readonly Sample[]
}

export function createDistribution(bounds: readonly number[]): Distribution {
  const counts = new Array<number>(bounds.length + 1).fill(0)
  let count = 0
  let sum = 0
  return {
    observe(value) {
      const at = bounds.findIndex(bound => value <= bound)
      const bucket = at === -1 ? bounds.length : at
      counts[bucket] = (counts[bucket] as number) + 1
      count++
      sum += value
    },
    count: () => count,
    samples(labels = {}) {
      let below = 0
      // Prometheus buckets are cumulative.
      const buckets = [...bounds, '+Inf'].map((le, at) => {
        below += counts[at] as number
        return sample(below, { ...labels, le }, '_bucket')
      })
      return [...buckets, sample(sum, labels, '_sum'), sample(count, labels, '_count')]
    },
  }
}

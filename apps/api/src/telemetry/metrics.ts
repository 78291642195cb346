/** The help of each metric. */
export const metrics = {
  plant_store_build_info: 'Always 1, labelled with the version of the program.',
  plant_store_ready: 'Whether the store works: 1 or 0.',
  plant_store_failure: '1, labelled with the reason, while the store fails.',
  plant_store_size_bytes: 'Size of the files of a store on SQLite, with its WAL.',
  plant_store_plants: 'Plants in the store, counted up to 100,000.',
  plant_store_last_backup_timestamp_seconds:
    'When the last backup of a store on SQLite began, in seconds since 1970, or 0 if there is none.',
  http_connections_open: 'Open connections of clients.',
  http_requests_total: 'Requests answered, by method, pattern of the path and status.',
  http_request_duration_seconds:
    'Time from the header section of a request to its answer. A pipelined one begins once those before it are answered.',
  plant_store_waiting_changes: 'Changes of the store that are not durable yet.',
  plant_store_commit_changes: 'How many changes shared a commit.',
  plant_store_commit_seconds:
    'Time from the start of a transaction until it was durable.',
  plant_store_announcements_waiting: 'New plants that wait to be delivered to a webhook.',
  plant_store_announcements_oldest_seconds: 'Longest wait of a new plant for a webhook.',
  plant_store_announcements_given_up:
    'New plants given up after three days without a delivery.',
  plant_store_announcements_stopped:
    'Whether a webhook is stopped, and misses new plants: 1 or 0.',
  plant_store_deliveries_total:
    'Attempts to deliver a new plant to a webhook, by outcome.',
  plant_store_log_lines_lost_total: 'Lines of the log that could not be written in time.',
  nodejs_eventloop_lag_mean_seconds: 'Mean delay of an event loop since the last scrape.',
  nodejs_eventloop_lag_p99_seconds:
    '99th percentile of event loop delays since the last scrape.',
  nodejs_eventloop_lag_max_seconds:
    'Maximum delay of an event loop since the last scrape.',
  nodejs_heap_used_bytes:
    'Memory of the JavaScript values of a thread, garbage included.',
  process_cpu_user_seconds_total: 'Processor time that the program itself used.',
  process_cpu_system_seconds_total:
    'Processor time that the system used for the program.',
  process_resident_memory_bytes: 'Physical memory that the process uses.',
  process_start_time_seconds: 'When the process started, in seconds since 1970.',
}

export type Labels = Readonly<Record<string, string | number>>

export interface Sample {
  readonly value: number
  readonly labels: Labels
  /** The end of the metric's name, such as `_sum`. */
  readonly suffix: string
}

export function sample(value: number, labels: Labels = {}, suffix = ''): Sample {
  return { value, labels, suffix }
}

export type MetricName = keyof typeof metrics

const histograms = [
  'http_request_duration_seconds',
  'plant_store_commit_changes',
  'plant_store_commit_seconds',
]

/** Returns the type of a metric. By convention, `_total` ends the name of a counter. */
export function typeOf(name: string) {
  if (name.endsWith('_total')) {
    return 'counter'
  }
  return histograms.includes(name) ? 'histogram' : 'gauge'
}

/** Plain data, which threads send to the main thread. */
export type Samples = Partial<Record<MetricName, readonly Sample[]>>

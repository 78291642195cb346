import { statSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { storeFiles } from '@plant-store/engine'
import { version } from '../version.ts'
import { type Labels, metrics, type Sample, type Samples, sample } from './metrics.ts'

/** A source that takes longer, or fails, is counted with its previous samples. */
const scrapeTimeoutMs = 1_000

/**
 * Returns a function that writes the metrics of the process for Prometheus. Concurrent
 * calls share one text.
 *
 * @param failure returns why the store is failing, if it is
 */
export function createScrape(
  databaseUrl: string,
  failure: () => string | undefined,
  sources: readonly (() => Promise<Samples>)[],
): () => Promise<string> {
  const reads = sources.map(inTime)
  const scrape = async () => {
    const samples = await Promise.all(reads.map(read => read()))
    const ofProcess = samplesOfProcess(failure(), storeFiles(databaseUrl))
    return writeMetrics([ofProcess, ...samples])
  }
  let underWay: Promise<string> | undefined
  return () => {
    underWay ??= scrape().finally(() => {
      underWay = undefined
    })
    return underWay
  }
}

function inTime(read: () => Promise<Samples>): () => Promise<Samples> {
  let latest: Samples = {}
  return async () => {
    const reading = read().then(
      samples => {
        latest = samples
      },
      () => {},
    )
    await Promise.race([reading, setTimeout(scrapeTimeoutMs, undefined, { ref: false })])
    return latest
  }
}

function samplesOfProcess(
  failure: string | undefined,
  files: readonly string[],
): Samples {
  const { user, system } = process.cpuUsage()
  return {
    plant_store_build_info: [sample(1, { version })],
    plant_store_ready: [sample(failure === undefined ? 1 : 0)],
    plant_store_failure: failure === undefined ? [] : [sample(1, { reason: failure })],
    plant_store_size_bytes: samplesOfSize(files),
    process_cpu_user_seconds_total: [sample(user / 1e6)],
    process_cpu_system_seconds_total: [sample(system / 1e6)],
    process_resident_memory_bytes: [sample(process.memoryUsage.rss())],
    process_start_time_seconds: [sample(Math.round(performance.timeOrigin) / 1000)],
  }
}

function samplesOfSize(files: readonly string[]) {
  try {
    const sizes = files.map(file => statSync(file, { throwIfNoEntry: false })?.size ?? 0)
    return sizes.length === 0 ? [] : [sample(sizes.reduce((sum, size) => sum + size))]
  } catch {
    // A failing disk must not hide the other metrics.
    return []
  }
}

/**
 * Writes metrics in Prometheus' text format, and adds up the samples of several threads
 * that have the same labels.
 */
export function writeMetrics(ofThreads: readonly Samples[]): string {
  const all = Object.entries(metrics).map(([name, [type, help]]) => {
    const sums = new Map<string, number>()
    for (const { value, labels, suffix } of ofThreads.flatMap(samples =>
      samplesOf(samples, name),
    )) {
      const key = name + suffix + writeLabels(labels)
      sums.set(key, (sums.get(key) ?? 0) + value)
    }
    const lines = [...sums].map(([key, value]) => `${key} ${value}\n`)
    return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`
  })
  return all.join('\n')
}

const samplesOf = (samples: Samples, name: string): readonly Sample[] =>
  samples[name as keyof Samples] ?? []

function writeLabels(labels: Labels): string {
  const written = Object.entries(labels).map(
    ([name, value]) => `${name}=${quoted(`${value}`)}`,
  )
  return written.length === 0 ? '' : `{${written.join()}}`
}

const quoted = (text: string) =>
  `"${text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"')}"`

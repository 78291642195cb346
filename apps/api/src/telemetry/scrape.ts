import { statSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { storeFiles } from '@plant-store/engine'
import { version } from '../version.ts'
import { writeMetrics } from './exposition.ts'
import { type Sample, type Samples, sample } from './metrics.ts'

/** A source that takes longer, or fails, is counted with its previous samples. */
const scrapeTimeoutMs = 1_000

type ReadSamples = () => Promise<Samples>

/**
 * Returns a function that writes the metrics of the process for Prometheus. Concurrent
 * calls share one text.
 *
 * @param failure returns why the store is failing, if it is
 */
export function createScrape(
  databaseUrl: string,
  failure: () => string | undefined,
  sources: readonly ReadSamples[],
): () => Promise<string> {
  const reads = sources.map(inTime)
  const scrape = async () => {
    const samples = await Promise.all(reads.map(read => read()))
    const reason = failure()
    const { user, system } = process.cpuUsage()
    const ofProcess: Samples = {
      plant_store_build_info: [sample(1, { version })],
      plant_store_ready: [sample(Number(reason === undefined))],
      plant_store_failure: reason === undefined ? [] : [sample(1, { reason })],
      plant_store_size_bytes: samplesOfSize(storeFiles(databaseUrl)),
      process_cpu_user_seconds_total: [sample(user / 1e6)],
      process_cpu_system_seconds_total: [sample(system / 1e6)],
      process_resident_memory_bytes: [sample(process.memoryUsage.rss())],
      process_start_time_seconds: [sample(Math.round(performance.timeOrigin) / 1000)],
    }
    return writeMetrics([ofProcess, ...samples])
  }
  let current: Promise<string> | undefined
  return () => {
    current ??= scrape().finally(() => {
      current = undefined
    })
    return current
  }
}

function inTime(read: ReadSamples): ReadSamples {
  let latest: Samples = {}
  const readLatest = async () => {
    latest = await read()
  }
  return async () => {
    const tooLate = setTimeout(scrapeTimeoutMs, undefined, { ref: false })
    // After a failure, the previous samples stay.
    await Promise.race([readLatest().catch(() => {}), tooLate])
    return latest
  }
}

/** @param files empty for a store that is no file */
function samplesOfSize(files: readonly string[]): readonly Sample[] {
  try {
    // They are added up where they are written.
    return files.map(file => sample(statSync(file, { throwIfNoEntry: false })?.size ?? 0))
  } catch {
    // A failing disk must not hide the other metrics.
    return []
  }
}

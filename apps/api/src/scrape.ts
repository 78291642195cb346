import { statSync } from 'node:fs'
import { type Storage, storeFiles } from '@plant-store/persistence'
import manifest from '../package.json' with { type: 'json' }
import type { Counters } from './counters.ts'
import type { Courier } from './courier/courier.ts'
import { type HttpThreads, withinScrapeTime } from './http-threads.ts'
import { metrics, type Samples, sample } from './metrics.ts'
import type { StoreLog } from './store-log.ts'

/** Returns a function that writes the metrics of the process for Prometheus. Concurrent calls share one text. */
export function createScrape(
  databaseUrl: string,
  storage: Storage,
  storeLog: StoreLog,
  counters: Counters,
  threads: HttpThreads,
  courier: Courier,
): () => Promise<string> {
  const scrape = async () => {
    // Loaded on the first scrape, which many processes never see.
    const [{ default: prometheus }, figures, ofCourier] = await Promise.all([
      import('prom-client'),
      threads.figures(),
      courier.figures(),
      // Without requests a failing store would go unnoticed. Its observer records what the check finds.
      withinScrapeTime(storage.check().catch(() => {})),
    ])
    const ofProcess = samplesOfProcess(storeLog.reason(), sizeOf(storeFiles(databaseUrl)))
    const all: Samples[] = [ofProcess, counters.read(storage.pending()), ofCourier, ...figures]
    // Adds up the samples of several threads with the same labels.
    return prometheus.AggregatorRegistry.aggregate(all.map(withHelp)).metrics()
  }
  let underWay: Promise<string> | undefined
  return () => {
    underWay ??= scrape().finally(() => {
      underWay = undefined
    })
    return underWay
  }
}

function sizeOf(files: readonly string[]): number | undefined {
  if (files.length === 0) return undefined
  try {
    return files.reduce((bytes, file) => bytes + (statSync(file, { throwIfNoEntry: false })?.size ?? 0), 0)
  } catch {
    // A failing disk must not hide the other metrics.
    return undefined
  }
}

function samplesOfProcess(failure: string | undefined, storeBytes: number | undefined): Samples {
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

/** Returns the metrics in prom-client's form for aggregation. */
function withHelp(samples: Samples): object[] {
  return Object.entries(metrics).map(([name, [type, help]]) => {
    const ofName = samples[name as keyof Samples] ?? []
    const values = ofName.map(({ suffix, ...each }) => ({ ...each, metricName: name + suffix }))
    return { name, type, help, values, aggregator: 'sum' }
  })
}

import { statSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { type Storage, storeFiles } from '@plant-store/persistence'
import type { Counters } from './counters.ts'
import { figuresTimeoutMs, type HttpThreads } from './http-threads.ts'
import type { StoreLog } from './store-log.ts'

/** Returns what writes the metrics of the whole process. Calls that overlap share one text. */
export function createScrape(
  databaseUrl: string,
  storage: Storage,
  storeLog: StoreLog,
  counters: Counters,
  threads: HttpThreads,
): () => Promise<string> {
  const scrape = async () => {
    // Loaded when first needed, as many never ask.
    const [{ writePrometheus }, figures] = await Promise.all([
      import('./prometheus.ts'),
      threads.figures(),
      noteFailure(storage),
    ])
    return writePrometheus([counters.read(storage.pending()), ...figures], {
      failure: storeLog.reason(),
      storeBytes: sizeOf(storeFiles(databaseUrl)),
    })
  }
  let underWay: Promise<string> | undefined
  return () => {
    underWay ??= scrape().finally(() => {
      underWay = undefined
    })
    return underWay
  }
}

/** Without requests, a store can fail unseen. Its observer notes what the check finds. */
async function noteFailure(storage: Storage): Promise<void> {
  const check = storage.check().catch(() => {})
  await Promise.race([check, setTimeout(figuresTimeoutMs, undefined, { ref: false })])
}

function sizeOf(files: readonly string[]): number | undefined {
  if (files.length === 0) return undefined
  try {
    return files.reduce((bytes, file) => bytes + (statSync(file, { throwIfNoEntry: false })?.size ?? 0), 0)
  } catch {
    // A disk that fails: the figures are wanted all the more.
    return undefined
  }
}

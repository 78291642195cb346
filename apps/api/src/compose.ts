import { setTimeout } from 'node:timers/promises'
import { hashToken, mintToken, scopes } from '@plant-store/access'
import { messageOf, readLastBackup, storageName } from '@plant-store/engine'
import { type MainStorage, openStorage } from '@plant-store/persistence'
import type { Config } from './config.ts'
import { settleAll, startHttpThreads } from './http/http-threads.ts'
import { findPort, listeningUrl } from './http/listening.ts'
import { createCounters } from './telemetry/counters.ts'
import { type Samples, sample } from './telemetry/metrics.ts'
import type { ProcessLog } from './telemetry/process-log.ts'
import { createScrape } from './telemetry/scrape.ts'
import { StoreLog } from './telemetry/store-log.ts'
import { startCourier } from './webhooks/start-courier.ts'

/**
 * Wires the service and starts it. Its disposal lets balancers notice the stop, ends the
 * HTTP threads and the courier together, and then the store.
 */
export async function startService(config: Config, log: ProcessLog) {
  const { logger, write: writeLog } = log
  await using starting = new AsyncDisposableStack()
  // A start that fails here creates no store, so the next one still makes the first
  // token.
  await findPort(config)

  // The store, on SQLite with its writer thread.
  const counters = createCounters(0)
  const storeLog = new StoreLog(logger, storageName(config.store.url))
  const opening = openStorage({
    ...config.store,
    lockTimeoutMs: config.store.timeoutMs,
    migrates: true,
    onCommit: counters.onCommit,
    ...storeLog.observer(0),
  })
  const storage = starting.use(await namingDatabaseUrl(opening))
  const { versionBefore: from, schemaVersion: to } = storage
  if (from !== undefined && from !== to) {
    logger.warn({ from, to }, 'the store was migrated to a new schema version')
  }

  // The threads that answer requests. This one answers none, so it reacts to a signal
  // at once.
  const threads = await startHttpThreads(config, storage, thread => ({
    // A thread asks for metrics once it listens.
    metrics: () => scrape(),
    writeLog,
    ...storeLog.observer(thread),
  }))
  const courier = startCourier(storage, logger, config.shutdownTimeoutMs)
  // The courier begins no more deliveries while the last requests are answered.
  starting.defer(() => settleAll([courier.stop(), threads.stop()]))
  const scrape = createScrape(config.store.url, () => storeLog.reason, [
    // Without requests, a store that cannot be read would go unnoticed. `onFailureChange`
    // learns what the check finds.
    async () => {
      await storage.check()
      return {}
    },
    async () => counters.read(storage.pending()),
    async () => ({ plant_store_log_lines_lost_total: [sample(log.lostLines())] }),
    () => sampleLastBackup(config.store.url, storeLog),
    () => samplePlants(storage),
    courier.samples,
    ...threads.samples,
  ])
  // Until the threads listen, another process may take a port that was free, so this is
  // as late as possible.
  const port = await findPort(config)
  await threads.listen(port)

  // A failed start would show the token to nobody, so this is last.
  const tokens = await prepareTokens(config, storage)
  const running = starting.move()
  if (config.shutdownDelayMs > 0) {
    running.defer(() => setTimeout(config.shutdownDelayMs))
    running.defer(() => threads.leave())
  }
  return {
    url: listeningUrl({ ...config, port }),
    ...tokens,
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  }
}

/** Names the setting in the error of a store that cannot be opened. */
export async function namingDatabaseUrl<Opened>(
  opening: Promise<Opened>,
): Promise<Opened> {
  try {
    return await opening
  } catch (cause) {
    throw new Error(`DATABASE_URL: ${messageOf(cause)}`, { cause })
  }
}

/**
 * A time that cannot be read changes no sample: 0 would raise the alert of a late backup,
 * although there may be one.
 */
async function sampleLastBackup(
  databaseUrl: string,
  storeLog: StoreLog,
): Promise<Samples> {
  const beganAt = await readLastBackup(databaseUrl).catch((error: Error) => {
    storeLog.noteUnreadBackupTime(error.message)
    throw error
  })
  storeLog.noteUnreadBackupTime(undefined)
  if (beganAt === undefined) {
    return {}
  }
  // Without a backup it is `null`, and the number 0.
  const seconds = Number(beganAt) / 1000
  return { plant_store_last_backup_timestamp_seconds: [sample(seconds)] }
}

/** Counting takes SQLite up to 20 ms, in which the main thread does nothing else. */
const countedPlantsMax = 100_000

async function samplePlants({ plants }: MainStorage): Promise<Samples> {
  const query = { limit: 1, textBytesMax: 1, countMax: countedPlantsMax }
  const { total } = await plants.pageCounted(query)
  return { plant_store_plants: [sample(total)] }
}

/**
 * Resolves to whether a client can have a token, and to the first one if this start has
 * created the store. It is made only on a terminal, because only the operator sees what
 * is shown there.
 */
async function prepareTokens(
  { accessTokens, jwt }: Config,
  { versionBefore, tokens }: MainStorage,
) {
  const isNewStore = versionBefore === undefined
  const hasAccessTokens = accessTokens.length > 0
  if (isNewStore && !hasAccessTokens && process.stderr.isTTY) {
    const firstToken = mintToken()
    const entry = { name: 'first', scopes, createdAt: new Date() }
    await tokens.insert(entry, hashToken(firstToken))
    return { firstToken, hasTokens: true }
  }
  const isConfigured = hasAccessTokens || jwt.jwksUrl !== undefined
  return { hasTokens: isConfigured || (await tokens.list()).length > 0 }
}

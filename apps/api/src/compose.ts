import { hashToken, mintToken, scopes } from '@plant-store/access'
import { explain, readLastBackup, storageName } from '@plant-store/engine'
import { openStorage } from '@plant-store/persistence'
import type { Config } from './config.ts'
import { startHttpThreads } from './http/http-threads.ts'
import { findPort, listeningUrl } from './http/listening.ts'
import { createCounters } from './telemetry/counters.ts'
import { sample } from './telemetry/metrics.ts'
import type { ProcessLog } from './telemetry/process-log.ts'
import { createScrape } from './telemetry/scrape.ts'
import { createStoreLog } from './telemetry/store-log.ts'
import { startCourier } from './webhooks/start-courier.ts'

/**
 * Wires the service and starts it. Its disposal runs in reverse: the courier, the HTTP
 * threads, the store.
 */
export async function startService(config: Config, log: ProcessLog) {
  const { logger, lostLines, write: writeLog } = log
  await using starting = new AsyncDisposableStack()
  // Before the store: a start that fails here creates none, and the next one still makes
  // the first token.
  await findPort(config)

  // The store, on SQLite with its writer thread.
  const counters = createCounters(0)
  const storeLog = createStoreLog(logger, storageName(config.databaseUrl))
  const storage = starting.use(
    await openStorage({
      url: config.databaseUrl,
      timeoutMs: config.databaseTimeoutMs,
      lockTimeoutMs: config.databaseTimeoutMs,
      readConnectionsMax: config.databasePoolMax,
      queueChangesMax: config.queueChangesMax,
      onCommit: counters.onCommit,
      onFailureChange: reason => storeLog.note(0, reason),
      onCheckpointFailure: storeLog.noteCheckpoint,
      onServerWarning: storeLog.noteWarning,
    }).catch(cause => {
      throw new Error(`DATABASE_URL: ${explain(cause)}`, { cause })
    }),
  )
  const { versionBefore, schemaVersion } = storage
  if (versionBefore !== undefined && versionBefore !== schemaVersion) {
    logger.warn(
      { from: versionBefore, to: schemaVersion },
      'the store was migrated to a new schema version',
    )
  }
  const courier = starting.use(startCourier(storage, logger, config.shutdownTimeoutMs))

  // The threads that answer requests. This one only supervises, so it reacts to a signal
  // at once.
  const threads = starting.use(
    await startHttpThreads(config, storage, thread => ({
      // Called once the thread listens.
      metrics: () => scrape(),
      writeLog,
      onFailureChange: reason => storeLog.note(thread, reason),
      onServerWarning: storeLog.noteWarning,
    })),
  )
  const scrape = createScrape(config.databaseUrl, storeLog.reason, [
    // Without requests a store that cannot be read would go unnoticed. `onFailureChange`
    // learns what the check finds.
    () => storage.check().then(() => ({})),
    async () => ({
      ...counters.read(storage.pending()),
      plant_store_log_lines_lost_total: [sample(lostLines())],
    }),
    async () => {
      const at = await readLastBackup(config.databaseUrl)
      const seconds = at === undefined ? [] : [sample(Number(at) / 1000)]
      return { plant_store_last_backup_timestamp_seconds: seconds }
    },
    courier.samples,
    ...threads.samples,
  ])
  // As late as possible: until the threads listen, another process may take a port that
  // was free.
  const listening = { ...config, port: await findPort(config) }
  await threads.listen(listening.port)
  // The courier's stop begins while requests are still answered.
  starting.defer(() => courier.stop())

  const hasGivenTokens = config.accessTokens.length > 0
  // Only a terminal shows it to nobody but the operator. Last, as nobody would see the
  // token of a failed start.
  const makesToken =
    versionBefore === undefined && !hasGivenTokens && process.stderr.isTTY
  const firstToken = makesToken ? mintToken() : undefined
  if (firstToken !== undefined) {
    await storage.tokens.insert(
      { name: 'first', scopes, createdAt: new Date() },
      hashToken(firstToken),
    )
  }
  const usesJwt = config.jwt.jwksUrl !== undefined
  const hasTokens = hasGivenTokens || usesJwt || (await storage.tokens.list()).length > 0

  const running = starting.move()
  return {
    url: listeningUrl(listening),
    /** Absent unless this start has created the store, on a terminal. */
    firstToken,
    /** Whether a client can have a token. */
    hasTokens,
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  }
}

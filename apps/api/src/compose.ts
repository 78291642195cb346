import { openStorage, storageName } from '@plant-store/persistence'
import type { Config } from './config.ts'
import { createCounters } from './counters.ts'
import { startCourier } from './courier/courier.ts'
import { makeFirstToken } from './first-token.ts'
import { createHttpThreads } from './http-threads.ts'
import { claimStart, findPort, listeningUrl } from './listening.ts'
import type { ProcessLog } from './log.ts'
import { createScrape } from './scrape.ts'
import { createStoreLog } from './store-log.ts'

/** The share of the shutdown timeout for deliveries in progress, while requests are answered. */
const courierStopShare = 0.5

export interface RunningService extends AsyncDisposable {
  /** The listening URL, with the base path of every route. */
  readonly url: string
  /** The access token that was created because the store never had one. Only its hash is stored. */
  readonly firstToken: string | undefined
}

/**
 * Wires the service and starts it. Its disposal runs in reverse: stop listening, drain, close the store.
 *
 * @param showsToken whether the caller can show a first token to the operator alone; otherwise none is created
 */
export async function startService(
  config: Config,
  log: ProcessLog,
  showsToken: boolean,
): Promise<RunningService> {
  const { logger, write: writeLog } = log
  await using starting = new AsyncDisposableStack()
  const parts = await startAllButHttp(config, log, starting)
  const { storage, storeLog, counters, threads, metrics, courier } = parts

  await using _claim = await claimStart(config)
  const listening = { ...config, port: await findPort(config) }
  if (storage.share === undefined) {
    // Imported only if needed: with HTTP threads, this thread does without Fastify.
    const { openThreadServer } = await import('./thread-server.ts')
    const alone = { ...listening, httpThreads: 1 }
    const server = starting.use(await openThreadServer(alone, storage, logger, counters, metrics))
    await server.listen()
  } else {
    // This thread only supervises, so it reacts to a signal at once.
    starting.use(threads)
    await threads.start(listening, storage.share, thread => ({
      metrics,
      writeLog,
      onStateChange: state => storeLog.note(thread, state),
    }))
    await threads.listen()
  }
  // Begins while requests are still answered. `startAllButHttp` waits for its end, before it closes the store.
  starting.defer(() => void courier.stop())

  const usesStoredTokens = config.accessTokens.length === 0
  // Last, as nobody would see the token of a failed start.
  const firstToken = usesStoredTokens && showsToken ? await makeFirstToken(storage.tokens) : undefined
  if (usesStoredTokens && config.jwt === undefined && (await storage.tokens.list()).length === 0) {
    logger.warn(
      'there is no access token: create one with plant-store token create --name NAME --scope write',
    )
  }

  const running = starting.move()
  return {
    url: listeningUrl(listening),
    firstToken,
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  }
}

/** Opens the store, and starts the courier. The HTTP threads are left to the caller to start. */
async function startAllButHttp(config: Config, { logger }: ProcessLog, starting: AsyncDisposableStack) {
  const counters = createCounters(0)
  const storeLog = createStoreLog(logger, storageName(config.databaseUrl))
  const storage = starting.use(
    await openStorage({
      url: config.databaseUrl,
      timeoutMs: config.databaseTimeoutMs,
      readConnectionsMax: config.databasePoolMax,
      queueRowsMax: config.queueRowsMax,
      onCommit: counters.onCommit,
      onStateChange: state => storeLog.note(0, state),
    }).catch(cause => {
      throw new Error(`DATABASE_URL: ${cause.message}`, { cause })
    }),
  )

  const threads = createHttpThreads()
  const courier = startCourier(storage, logger, config.shutdownTimeoutMs * courierStopShare)
  starting.defer(() => courier.stop())
  const metrics = createScrape(config.databaseUrl, storage, storeLog, counters, threads, courier)
  return { storage, storeLog, counters, threads, metrics, courier }
}

import { setFlagsFromString } from 'node:v8'
import { explain, storageName } from '@plant-store/persistence'
import { startService } from './compose.ts'
import { readConfig } from './config.ts'
import { showFirstToken } from './first-token.ts'
import { openLog } from './signals/log.ts'

/** Runs the service that the environment describes until a signal arrives. Exits with 1 if that fails. */
export async function serve(): Promise<void> {
  try {
    await serveUntilSignal()
  } catch (error) {
    process.stderr.write(`plant-store: ${explain(error as Error).replaceAll('\n', '\nplant-store: ')}\n`)
    // Also if something cannot be closed.
    process.exit(1)
  }
}

async function serveUntilSignal(): Promise<void> {
  // For the threads. With V8's defaults, pages of long texts pile up to several times the memory in use.
  setFlagsFromString('--initial-old-space-size=32')
  setFlagsFromString('--heap-growing-percent=50')
  const config = readConfig(process.env)
  const pretty =
    config.logFormat === 'pretty' ? (await import('./signals/pretty-log.ts')).prettyLines : undefined
  const log = openLog(config.logLevel, pretty)
  const { logger } = log
  const stop = firstSignal().then(signal => {
    logger.info({ signal }, 'stopping')
    setTimeout(() => {
      logger.error({ timeoutMs: config.shutdownTimeoutMs }, 'did not stop in time')
      log.exit(1)
    }, config.shutdownTimeoutMs).unref()
  })
  // Also from the threads. Requests under way stay unanswered; what was answered is on disk.
  process.once('uncaughtException', error => {
    logger.fatal({ err: error }, 'stopped by an internal error')
    log.exit(1)
  })

  const service = await startService(config, log, process.stderr.isTTY === true)
  logger.info({ url: service.url, database: storageName(config.databaseUrl) }, 'listening')
  if (service.firstToken !== undefined) {
    // The line that names the URL comes first.
    await log.written()
    showFirstToken(service.firstToken, service.url)
  }
  await stop
  await service[Symbol.asyncDispose]()
  logger.info('stopped')
}

/** Waits for the first signal and ignores further ones: terminals and package managers send the same signal twice. */
function firstSignal(): Promise<NodeJS.Signals> {
  return new Promise(resolve => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, resolve)
  })
}

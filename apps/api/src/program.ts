import { explain, storageName } from '@plant-store/persistence'
import { startService } from './compose.ts'
import { readConfig } from './config.ts'
import { openLog } from './log.ts'
import { version } from './version.ts'

try {
  if (process.argv.includes('--version')) console.log(version)
  else await main()
} catch (error) {
  process.stderr.write(`plant-store: ${explain(error as Error).replaceAll('\n', '\nplant-store: ')}\n`)
  // Also where something that was opened can't be closed.
  process.exit(1)
}

async function main(): Promise<void> {
  const config = readConfig(process.env)
  const log = openLog(config.logLevel)
  const { logger } = log
  const stop = firstSignal().then(signal => {
    logger.info({ signal }, 'stopping')
    setTimeout(() => {
      logger.error({ timeoutMs: config.shutdownTimeoutMs }, 'did not stop in time')
      process.exit(1)
    }, config.shutdownTimeoutMs).unref()
  })
  // Also of its threads. What is under way can't be answered any more; what was answered is on the disk.
  process.once('uncaughtException', error => {
    logger.fatal({ err: error }, 'ended by a defect')
    process.exit(1)
  })

  const service = await startService(config, log, process.stderr.isTTY === true)
  logger.info({ url: service.url, database: storageName(config.databaseUrl) }, 'listening')
  if (service.firstToken !== undefined) showFirstToken(service.firstToken, service.url)

  await stop
  await service[Symbol.asyncDispose]()
  logger.info('stopped')
}

/** A terminal sends one to every process of its foreground job, and package managers pass theirs on: only the first counts. */
function firstSignal(): Promise<NodeJS.Signals> {
  return new Promise(resolve => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, resolve)
  })
}

/** To the terminal and not to the log, which others may read. */
function showFirstToken(token: string, url: string): void {
  process.stderr.write(`
There was no access token yet, so here is one. It is shown this once and kept only as a hash:

  ${token}

Add a plant with it:

  curl ${url}/plants -H 'Authorization: Bearer ${token}' -H 'Content-Type: application/json' -d '{"id": 1, "name": "Monstera", "tag": "climber"}'

`)
}

import { setFlagsFromString } from 'node:v8'
import { messageOf, printable, storageName } from '@plant-store/engine'
import { planOpening } from '@plant-store/persistence'
import type { Logger } from 'pino'
import { namingDatabaseUrl, startService } from './compose.ts'
import { type Config, misspeltSettings, readConfig } from './config.ts'
import { findPort } from './http/listening.ts'
import { openLog, type ProcessLog } from './telemetry/process-log.ts'

/**
 * Checks the settings in the environment, the port and the store. Changes nothing.
 * Resolves to the reasons for which a start would fail, or without one to the change that
 * it would make to the store, and to the variables that resemble a setting.
 */
export async function checkService() {
  const misspelt = misspeltSettings(process.env)
  try {
    const config = readConfig(process.env)
    const faults: string[] = []
    const note = (error: unknown) => void faults.push(messageOf(error))
    await findPort(config).catch(note)
    const plan = await namingDatabaseUrl(planOpening(config.store.url)).catch(note)
    return { faults, plan, misspelt }
  } catch (error) {
    return { faults: messageOf(error).split('\n'), misspelt }
  }
}

/**
 * Runs the service that the environment describes until a signal arrives. Exits with 1 if
 * that fails.
 *
 * @param commandLine how an operator runs the commands of the program, such as
 *   `plant-store`
 */
export async function serve(commandLine: string): Promise<void> {
  // The threads need it. With V8's defaults, pages of long texts pile up to several times
  // the memory in use.
  setFlagsFromString('--initial-old-space-size=32')
  setFlagsFromString('--heap-growing-percent=30')
  let log: ProcessLog | undefined
  try {
    const config = readConfig(process.env)
    log = await openLog(config)
    await serveUntilSignal(config, log, commandLine)
  } catch (error) {
    writeFailure(error)
    await log?.written()
    // Something that cannot be closed would keep the process running.
    process.exit(1)
  }
  const isWritten = await log.written()
  // A log that cannot be written would keep the process running, too.
  if (!isWritten) {
    process.exit()
  }
}

/** The configuration may be what is invalid, so the format of the log is read here. */
function writeFailure(error: unknown) {
  const priority = process.env['LOG_FORMAT'] === 'journal' ? '<3>' : ''
  const lines = messageOf(error)
    .split('\n')
    .map(line => `${priority}plant-store: ${printable(line)}\n`)
  process.stderr.write(lines.join(''))
}

async function serveUntilSignal(config: Config, log: ProcessLog, commandLine: string) {
  const { logger } = log
  for (const misspelt of misspeltSettings(process.env)) {
    logger.warn(misspelt, 'an environment variable has almost the name of a setting')
  }
  const stop = waitForStop(config, log)
  // An error of an HTTP thread or of the writer ends the process, too. Requests in
  // progress stay unanswered. Every change that was answered is on disk.
  process.once('uncaughtException', error => {
    logger.fatal({ err: error }, 'stopped by an internal error')
    log.exit(1)
  })

  const service = await startService(config, log)
  logger.info({ url: service.url, database: storageName(config.store.url) }, 'listening')
  if (process.env['NOTIFY_SOCKET'] !== undefined) {
    await notifySystemd(logger)
  }
  const makeToken = `${commandLine} token create --name NAME --scope write`
  if (service.firstToken !== undefined) {
    // The line that names the URL comes first.
    await log.written()
    showFirstToken(service.firstToken, service.url, makeToken)
  } else if (!service.hasTokens) {
    logger.warn(`there is no access token: create one with ${makeToken}`)
  }
  await stop
  await service[Symbol.asyncDispose]()
  logger.info('stopped')
}

/** Resolves once a signal arrives. From then on, the process has its time to stop. */
async function waitForStop(
  { shutdownDelayMs, shutdownTimeoutMs }: Config,
  { logger, exit }: ProcessLog,
) {
  const { promise, resolve } = Promise.withResolvers<NodeJS.Signals>()
  // SIGHUP means that the terminal or the session has ended. Further signals are ignored:
  // terminals and package managers send the same one twice.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    process.on(signal, resolve)
  }
  logger.info({ signal: await promise }, 'stopping')
  const endLate = () => {
    logger.error({ timeoutMs: shutdownTimeoutMs }, 'did not stop in time')
    exit(1)
  }
  setTimeout(endLate, shutdownDelayMs + shutdownTimeoutMs).unref()
}

/**
 * Reports to systemd that the service has started. Node cannot write to the datagram
 * socket that it listens on.
 */
async function notifySystemd(logger: Logger) {
  const { execFile } = await import('node:child_process')
  execFile('systemd-notify', ['--ready'], error => {
    if (error !== null) {
      logger.error({ err: error }, 'systemd cannot be notified of the start')
    }
  })
}

/** Writes to the terminal, because others may read the log. */
function showFirstToken(token: string, url: string, makeToken: string) {
  process.stderr.write(`
This is the first access token. It is shown only once, because the store keeps only its hash:

  ${token}

Add a plant with it:

  curl ${url}/plants -H 'Authorization: Bearer ${token}' -H 'Content-Type: application/json' -d '{"id": 1, "name": "Monstera", "tag": "climber"}'

To sign in at ${url}/browse, paste it there. For another token, run this beside the server:

  ${makeToken}

`)
}

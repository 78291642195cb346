import assert from 'node:assert/strict'
import { parentPort, workerData } from 'node:worker_threads'
import { createPlantUseCases } from '@plant-store/domain'
import type { StorageHandle } from '@plant-store/engine'
import { createServer, stopListening, stopServer } from '@plant-store/http/server'
import { attachStorage } from '@plant-store/persistence'
import { createBirpc } from 'birpc'
import type { Config } from '../config.ts'
import { createCounters } from '../telemetry/counters.ts'
import type { Samples } from '../telemetry/metrics.ts'
import { gatherLog } from '../telemetry/process-log.ts'
import { browseFolder } from './browse-folder.ts'
import { openGate } from './open-gate.ts'

export interface HttpThreadData {
  /** The number of the thread, counted from 1. */
  readonly thread: number
  readonly config: Config
  readonly shared: StorageHandle
}

/** The calls from the main thread to this one. */
export interface HttpThread {
  /** Resolves once the thread can listen. No other call comes before that. */
  ready(): Promise<void>
  listen(port: number): Promise<void>
  /** Lets `/readyz` fail, so that balancers send nothing new. All else still works. */
  leave(): void
  /** Accepts no new connections. Open ones are still served. */
  stopListening(): Promise<void>
  samples(): Samples
  /**
   * Gives each connection one more answer and ends the thread, with code 1 if a request
   * stays unanswered.
   */
  stop(): void
}

/** The calls from this thread to the main one. */
export interface MainThread {
  /** Returns the metrics of the whole process. */
  metrics(): Promise<string>
  writeLog(lines: string): void
  onFailureChange(reason?: string): void
  onServerWarning(warning: string): void
}

/**
 * The share of the shutdown timeout for draining. The rest is for pending changes and for
 * closing the store.
 */
const drainShare = 0.8
/** The share for batches that are still arriving. */
const batchShare = 0.4

const parent = parentPort
assert(parent !== null, 'http-thread.js must run as a worker thread')
const { thread, config, shared } = workerData as HttpThreadData
const { host, httpThreads, baseUrl, serverLimits, shutdownTimeoutMs } = config
const address = { host, reusePort: httpThreads > 1 }

const counters = createCounters(thread)
const ready = Promise.withResolvers<void>()
let isLeaving = false
const stopRequested = Promise.withResolvers<void>()

// The server and the storage are opened below, before any call but `ready`.
const calls: HttpThread = {
  ready: () => ready.promise,
  async listen(port) {
    await server.listen({ ...address, port })
  },
  leave() {
    isLeaving = true
  },
  stopListening: () => stopListening(server.server),
  samples: () => counters.read(storage.pending()),
  stop: () => stopRequested.resolve(),
}
const mainThread = createBirpc<MainThread, HttpThread>(calls, {
  post: parent.postMessage.bind(parent),
  on: listener => void parent.on('message', listener),
  // A call waits without a limit.
  timeout: -1,
})
const log = gatherLog(config.logLevel, mainThread.writeLog.asEvent)
const { logger } = log

await using storage = await attachStorage(shared, {
  onCommit: counters.onCommit,
  onFailureChange: mainThread.onFailureChange.asEvent,
  onServerWarning: mainThread.onServerWarning.asEvent,
})
await using tracing = await openTracing()
const plants = createPlantUseCases(storage)
const unannounced = createPlantUseCases({ plants: storage.plants.unannounced })
const stopping = new AbortController()
const server = createServer({
  plants: tracing?.traceUseCases(plants) ?? plants,
  unannounced: tracing?.traceUseCases(unannounced) ?? unannounced,
  gate: await openGate(config, storage.tokens, { logger, signal: stopping.signal }),
  check: storage.check,
  isLeaving: () => isLeaving,
  logger,
  metrics: mainThread.metrics,
  corsOrigins: config.corsOrigins,
  onAnswer(answered) {
    log.onAnswer(answered)
    counters.onAnswer(answered)
  },
  traceRequest: tracing?.traceRequest,
  baseUrl: baseUrl === undefined ? undefined : new URL(baseUrl),
  limits: {
    ...serverLimits,
    // One thread's share: the kernel spreads connections about evenly.
    connectionsMax: Math.ceil(serverLimits.connectionsMax / httpThreads),
    heldBytesMax: Math.ceil(serverLimits.heldBytesMax / httpThreads),
    batchRequestDrainMs: shutdownTimeoutMs * batchShare,
  },
  trustedProxies: config.trustedProxies,
  page: browseFolder(),
})
server.server.on('connection', counters.onConnection)
await server.ready()
ready.resolve()

await stopRequested.promise
stopping.abort()
const unanswered = await stopServer(server, shutdownTimeoutMs * drainShare)
if (unanswered > 0) {
  logger.error(
    { connections: unanswered },
    'connections closed with a request unanswered',
  )
  process.exitCode = 1
}
parent.unref()

async function openTracing() {
  const { endpoint, isDisabled, exporter } = config.traces
  if (endpoint === undefined || isDisabled === 'true' || exporter === 'none') {
    return
  }
  // Only a service with a collector loads OpenTelemetry.
  const { startTracing } = await import('../telemetry/traces.ts')
  return startTracing(config.traces, logger)
}

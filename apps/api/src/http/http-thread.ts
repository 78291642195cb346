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
import { openGate } from './open-gate.ts'
import { pageFolder } from './page-folder.ts'

export interface HttpThreadData {
  /** From 1. */
  readonly thread: number
  readonly config: Config
  readonly shared: StorageHandle
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
if (parent === null) {
  throw new Error('http-thread.js must run as a worker thread')
}
const { thread, config, shared } = workerData as HttpThreadData
const { host, httpThreads, tracesEndpoint, baseUrl, serverLimits, shutdownTimeoutMs } =
  config
const address = { host, reusePort: httpThreads > 1 }

const counters = createCounters(thread)
const ready = Promise.withResolvers<void>()
const stopped = Promise.withResolvers<void>()
/**
 * The calls from the main thread. Only `ready` comes before the store and the server
 * below exist.
 */
const calls = {
  /** Resolves once the thread can listen. */
  ready: () => ready.promise,
  listen: async (port: number): Promise<void> =>
    void (await server.listen({ ...address, port })),
  /** Accepts no new connections. Open ones are still served. */
  stopListening: (): Promise<void> => stopListening(server.server),
  samples: (): Samples => counters.read(storage.pending()),
  /**
   * Answers the requests that have arrived and ends the thread, with code 1 if one stays
   * unanswered.
   */
  stop: () => stopped.resolve(),
}
export type HttpThread = typeof calls
const mainThread = createBirpc<MainThread, HttpThread>(calls, {
  post: parent.postMessage.bind(parent),
  on: listener => void parent.on('message', listener),
  timeout: -1,
})
const { logger, logAnswered } = gatherLog(config.logLevel, mainThread.writeLog.asEvent)

await using storage = await attachStorage(shared, {
  onCommit: counters.onCommit,
  onFailureChange: mainThread.onFailureChange.asEvent,
  onServerWarning: mainThread.onServerWarning.asEvent,
})
await using tracing =
  tracesEndpoint === undefined
    ? undefined
    : (await import('../telemetry/traces.ts')).startTracing()
const stopping = new AbortController()
const traced = <All extends object>(useCases: All): All =>
  tracing?.traced(useCases) ?? useCases
const page = pageFolder()
const server = createServer({
  ...traced({ plants: createPlantUseCases(storage) }),
  unannounced: traced({
    plants: createPlantUseCases({ plants: storage.plants.unannounced }),
  }).plants,
  gate: await openGate(config, storage.tokens, { logger, signal: stopping.signal }),
  check: storage.check,
  logger,
  metrics: mainThread.metrics,
  corsOrigins: config.corsOrigins,
  onAnswer(answered) {
    logAnswered(answered)
    counters.onAnswer(answered)
  },
  ...(tracing && { traceRequest: tracing.traceRequest }),
  ...(baseUrl && { baseUrl: new URL(baseUrl) }),
  limits: {
    ...serverLimits,
    // One thread's share: the kernel spreads connections about evenly.
    connectionsMax: Math.ceil(serverLimits.connectionsMax / httpThreads),
    heldBytesMax: Math.ceil(serverLimits.heldBytesMax / httpThreads),
    batchRequestDrainMs: shutdownTimeoutMs * batchShare,
  },
  trustedProxies: config.trustedProxies,
  ...(page && { page }),
})
server.server.on('connection', counters.onConnection)
await server.ready()
ready.resolve()

await stopped.promise
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

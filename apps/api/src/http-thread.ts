import { parentPort, workerData } from 'node:worker_threads'
import { attachStorage, type SharedStorage, type StoreState } from '@plant-store/persistence'
import { createBirpc } from 'birpc'
import type { Config } from './config.ts'
import { createCounters } from './counters.ts'
import { gatherLog } from './log.ts'
import type { Samples } from './metrics.ts'
import { openThreadServer } from './thread-server.ts'

export interface HttpThreadData {
  /** From 1. */
  readonly thread: number
  readonly config: Config
  readonly shared: SharedStorage
  readonly wrongTokenCounts: SharedArrayBuffer
}

/** The calls from the main thread to this one. */
export interface HttpThread {
  /** Resolves once the thread can listen. */
  ready(): Promise<void>
  listen(): Promise<void>
  stopListening(): Promise<void>
  figures(): Samples
  /** Answers the requests that have arrived and ends the thread. */
  stop(): void
}

/** The calls from this thread to the main one. */
export interface HttpThreadOwner {
  /** Returns the metrics of the whole process. */
  metrics(): Promise<string>
  writeLog(lines: string): void
  onStateChange(state: StoreState): void
}

const port = parentPort
if (port === null) throw new Error('http-thread.js must run as a worker thread')
const { thread, config, shared, wrongTokenCounts } = workerData as HttpThreadData

const counters = createCounters(thread)
const ready = Promise.withResolvers<void>()
const stopped = Promise.withResolvers<void>()
const owner = createBirpc<HttpThreadOwner, HttpThread>(
  {
    ready: () => ready.promise,
    // The rest is called once the thread is ready, so that the store and the server below exist.
    listen: () => server.listen(),
    stopListening: () => server.stopListening(),
    figures: () => counters.read(storage.pending()),
    stop: () => stopped.resolve(),
  },
  {
    post: message => port.postMessage(message),
    on: listener => void port.on('message', listener),
    timeout: -1,
  },
)

await using storage = await attachStorage(shared, {
  onCommit: counters.onCommit,
  onStateChange: owner.onStateChange.asEvent,
})
const logger = gatherLog(config.logLevel, owner.writeLog.asEvent)
await using server = await openThreadServer(
  config,
  storage,
  logger,
  counters,
  owner.metrics,
  wrongTokenCounts,
)
ready.resolve()
await stopped.promise
port.unref()

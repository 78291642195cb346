import { parentPort, workerData } from 'node:worker_threads'
import { attachStorage, type SharedStorage, type StoreState } from '@plant-store/persistence'
import type { Config } from './config.ts'
import { gatherLog } from './log.ts'
import { createMetrics, type ThreadFigures } from './metrics.ts'
import { serve } from './serve.ts'

export interface HttpThreadData {
  readonly config: Config
  readonly shared: SharedStorage
  /** Of all threads. */
  readonly wrongTokenCounts: SharedArrayBuffer
}

/**
 * What its owner tells it: to listen, to stop listening, to stop, to say its figures,
 * and those of the whole process that it asked for.
 */
export type ToHttpThread = 'listen' | 'stopListening' | 'stop' | 'figures' | { readonly metrics: string }

export type FromHttpThread =
  | 'ready'
  | 'listening'
  | 'stoppedListening'
  | { readonly figures: ThreadFigures }
  | 'metrics'
  | { readonly log: string }
  | { readonly state: StoreState }

const owner = parentPort
if (owner === null) throw new Error('http-thread.js runs as a worker thread')
const tell = (message: FromHttpThread) => owner.postMessage(message)

const { config, shared, wrongTokenCounts } = workerData as HttpThreadData
const metrics = createMetrics()
await using storage = await attachStorage(shared, {
  onCommit: metrics.onCommit,
  onStateChange: state => tell({ state }),
})

const toldToListen = Promise.withResolvers<void>()
const toldToStopListening = Promise.withResolvers<void>()
const toldToStop = Promise.withResolvers<void>()
const asking: ((metrics: string) => void)[] = []
owner.on('message', (message: ToHttpThread) => {
  if (message === 'listen') toldToListen.resolve()
  else if (message === 'stopListening') toldToStopListening.resolve()
  else if (message === 'stop') toldToStop.resolve()
  else if (message === 'figures') tell({ figures: metrics.read(storage.pending()) })
  else for (const answer of asking.splice(0)) answer(message.metrics)
})
const metricsOfAll = () =>
  new Promise<string>(resolve => {
    asking.push(resolve)
    if (asking.length === 1) tell('metrics')
  })

const { onAnswer, onConnection } = metrics
const signals = { metrics: metricsOfAll, onAnswer, onConnection, wrongTokenCounts }
const logger = gatherLog(config.logLevel, log => tell({ log }))
await using server = await serve(config, storage, logger, signals, () => {
  tell('ready')
  return toldToListen.promise
})
tell('listening')
await toldToStopListening.promise
await server.stopListening()
tell('stoppedListening')
await toldToStop.promise
owner.unref()

import { parentPort, workerData } from 'node:worker_threads'
import { attachStorage, type SharedStorage, type StoreState } from '@plant-store/persistence'
import { type CourierReport, courierLimits, createCourier } from '@plant-store/webhooks'
import { createBirpc } from 'birpc'
import { createPost } from './post.ts'

export interface CourierThreadData {
  readonly shared: SharedStorage
  /** For what is under way when it is stopped. */
  readonly stopTimeoutMs: number
}

/** What the main thread calls in this one. */
export interface CourierThread {
  /** Ends what is under way, gives back every lease, and ends the thread. */
  stop(): void
}

/** What this thread calls in the main one. */
export interface CourierThreadOwner {
  report(report: CourierReport): void
  onStateChange(state: StoreState): void
}

const port = parentPort
if (port === null) throw new Error('courier-thread.js must run as a worker thread')
const { shared, stopTimeoutMs } = workerData as CourierThreadData

const stop = new AbortController()
const abort = new AbortController()
const owner = createBirpc<CourierThreadOwner, CourierThread>(
  {
    stop() {
      stop.abort()
      setTimeout(() => abort.abort(), stopTimeoutMs).unref()
    },
  },
  {
    post: message => port.postMessage(message),
    on: listener => void port.on('message', listener),
    timeout: -1,
  },
)

await using storage = await attachStorage(shared, { onStateChange: owner.onStateChange.asEvent })
const deliver = createCourier({
  outbox: storage.outbox,
  webhooks: storage.webhooks,
  post: createPost(courierLimits),
  report: owner.report.asEvent,
})
await deliver({ stop: stop.signal, abort: abort.signal })
port.unref()

import { parentPort, workerData } from 'node:worker_threads'
import { attachStorage, type SharedStorage, type StoreState } from '@plant-store/persistence'
import { type CourierReport, courierLimits, createCourier } from '@plant-store/webhooks'
import { createPost } from './post.ts'

export interface CourierThreadData {
  readonly shared: SharedStorage
  /** Otherwise it only limits what waits. */
  readonly delivers: boolean
  /** For deliveries in progress during the stop. */
  readonly stopTimeoutMs: number
}

/** What this thread posts to the main one. Any message from there stops it. */
export type CourierMessage = CourierReport | { readonly event: 'store'; readonly state: StoreState }

const port = parentPort
if (port === null) throw new Error('courier-thread.js must run as a worker thread')
const { shared, delivers, stopTimeoutMs } = workerData as CourierThreadData
const post = (message: CourierMessage) => port.postMessage(message)

const stop = new AbortController()
const abort = new AbortController()
port.once('message', () => {
  stop.abort()
  setTimeout(() => abort.abort(), stopTimeoutMs).unref()
})

await using storage = await attachStorage(shared, {
  onStateChange: state => post({ event: 'store', state }),
})
const { outbox, webhooks } = storage
const limits = delivers ? courierLimits : { ...courierLimits, webhooksAtOnce: 0 }
const run = createCourier({ outbox, webhooks, post: createPost(limits), report: post, limits })
await run({ stop: stop.signal, abort: abort.signal })
port.close()

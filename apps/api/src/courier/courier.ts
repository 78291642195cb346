import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { type SharedStorage, type Storage, type StoreState, transferListOf } from '@plant-store/persistence'
import type { CourierReport, WebhookFigures } from '@plant-store/webhooks'
import type { Logger } from 'pino'
import { withinScrapeTime } from '../http-threads.ts'
import { type Samples, sample } from '../metrics.ts'
import type { CourierMessage, CourierThreadData } from './courier-thread.ts'

/** The interval of looking for the first webhook. */
const lookEveryMs = 1_000

export interface Courier {
  /** Resolves once deliveries in progress have ended and every lease is returned. */
  stop(): Promise<void>
  figures(): Promise<Samples>
}

export interface CourierOptions extends Omit<CourierThreadData, 'shared'> {
  readonly onStateChange: (state: StoreState) => void
}

/** Starts the courier's thread, once a webhook exists. */
export function startCourier(
  storage: Storage,
  share: () => SharedStorage,
  logger: Logger,
  { onStateChange, ...options }: CourierOptions,
): Courier {
  const stopping = new AbortController()
  const deliveries = new Map<string, number>()
  const onMessage = (message: CourierMessage) => {
    if (message.event === 'store') return onStateChange(message.state)
    const { event, ...about } = message
    const [level, words] = lines[event]
    logger[level](about, words)
    const outcome = outcomes[event]
    if (outcome === undefined) return
    const key = JSON.stringify({ webhook: about.webhook, outcome })
    deliveries.set(key, (deliveries.get(key) ?? 0) + ('count' in about ? about.count : 1))
  }

  const { signal } = stopping
  const running = (async () => {
    for (;;) {
      await setTimeout(lookEveryMs, undefined, { signal }).catch(() => {})
      if (signal.aborted) return
      // The store reports its own failures.
      const webhooks = await storage.webhooks.list().catch(() => [])
      if (webhooks.length === 0) continue
      const data = { shared: share(), ...options }
      await runThread(data, onMessage, signal).catch(error => {
        // Requests are still answered.
        logger.error({ err: error }, 'the courier ended by a defect, and starts again')
      })
    }
  })()

  let waiting: Samples = {}
  return {
    stop() {
      stopping.abort()
      return running
    },
    async figures() {
      const asked = samplesOfOutbox(storage).then(samples => {
        waiting = samples
      })
      await withinScrapeTime(asked.catch(() => {}))
      const counted = [...deliveries].map(([key, count]) => sample(count, JSON.parse(key)))
      return { ...waiting, plant_store_deliveries_total: counted }
    },
  }
}

async function samplesOfOutbox({ outbox }: Storage): Promise<Samples> {
  const figures = await outbox.figures()
  const ofEach = (value: (each: WebhookFigures) => number) =>
    figures.map(each => sample(value(each), { webhook: each.webhook }))
  return {
    plant_store_announcements_waiting: ofEach(({ waiting }) => waiting),
    plant_store_announcements_oldest_seconds: ofEach(({ oldestMs = 0 }) => oldestMs / 1000),
    plant_store_announcements_given_up: ofEach(({ givenUp }) => givenUp),
    plant_store_announcements_missed_total: ofEach(({ missed }) => missed),
  }
}

/** Resolves when the thread has ended. Rejects with the error that ended it. */
async function runThread(
  data: CourierThreadData,
  onMessage: (message: CourierMessage) => void,
  signal: AbortSignal,
): Promise<void> {
  const worker = new Worker(new URL('./courier-thread.js', import.meta.url), {
    workerData: data,
    transferList: transferListOf(data.shared),
  })
  worker.on('message', onMessage)
  const stop = () => worker.postMessage('stop')
  if (signal.aborted) stop()
  else signal.addEventListener('abort', stop)
  await once(worker, 'exit')
}

/** Of the deliveries that a report is about, if any. */
const outcomes: { readonly [Event in CourierReport['event']]?: string } = {
  delivered: 'received',
  'attempt-failed': 'failed',
  'given-up': 'failed',
}

const lines = {
  delivered: ['debug', 'plants were announced'],
  'attempt-failed': ['warn', 'an announcement failed, and is tried again'],
  'given-up': ['error', 'an announcement was given up: see plant-store webhook log'],
  paused: ['error', 'a webhook has failed for days and is paused: see plant-store webhook resume'],
  removed: ['warn', 'a webhook answered 410 and was removed'],
  full: ['error', 'too much waits for a webhook: new plants are not announced to it'],
  'no-longer-full': ['info', 'new plants are announced to the webhook again'],
} as const satisfies Record<CourierReport['event'], readonly [string, string]>

import { setTimeout } from 'node:timers/promises'
import type { Storage } from '@plant-store/persistence'
import {
  Courier,
  type CourierReport,
  type Post,
  type PostAnswer,
  type WebhookFigures,
} from '@plant-store/webhooks'
import type { Logger } from 'pino'
import { type Samples, sample } from '../telemetry/metrics.ts'

/**
 * The share of the shutdown timeout for deliveries in progress, while requests are
 * answered.
 */
const stopShare = 0.5
/** After a defect. */
const restartDelayMs = 1_000

/**
 * Starts to deliver to the webhooks, on this thread. Its disposal resolves once
 * deliveries in progress have ended and every lease is returned.
 */
export function startCourier(
  { webhooks }: Storage,
  logger: Logger,
  shutdownTimeoutMs: number,
) {
  const stopping = new AbortController()
  const aborting = new AbortController()
  const signals = { stop: stopping.signal, abort: aborting.signal }
  const deliveries = new Map<string, number>()
  const report = ({ event, ...about }: CourierReport) => {
    const [level, words, outcome] = lines[event]
    logger[level](about, words)
    if (outcome === undefined) {
      return
    }
    const key = JSON.stringify({ webhook: about.webhook, outcome })
    deliveries.set(key, (deliveries.get(key) ?? 0) + ('count' in about ? about.count : 1))
  }
  // Loaded with the first delivery: many stores have no webhook.
  const post = async (post: Post): Promise<PostAnswer> => {
    const { sendWebhook } = await import('./send-webhook.ts')
    return sendWebhook(post)
  }
  const options = { outbox: webhooks.outbox, webhooks, post, report }

  const running = (async () => {
    while (!stopping.signal.aborted) {
      await new Courier(options).run(signals).catch(async error => {
        // Requests are still answered.
        logger.error({ err: error }, 'the courier ended by a defect, and starts again')
        await setTimeout(restartDelayMs, undefined, { signal: stopping.signal }).catch(
          () => {},
        )
      })
    }
  })()

  const stop = () => {
    stopping.abort()
    setTimeout(shutdownTimeoutMs * stopShare, undefined, { ref: false }).then(() =>
      aborting.abort(),
    )
  }
  return {
    stop,
    async samples(): Promise<Samples> {
      const figures = await webhooks.outbox.figures()
      const ofEach = (value: (each: WebhookFigures) => number) =>
        figures.map(each => sample(value(each), { webhook: each.webhook }))
      return {
        plant_store_announcements_waiting: ofEach(({ waiting }) => waiting),
        plant_store_announcements_oldest_seconds: ofEach(
          ({ oldestMs = 0 }) => oldestMs / 1000,
        ),
        plant_store_announcements_given_up: ofEach(({ givenUp }) => givenUp),
        plant_store_announcements_stopped: ofEach(({ state }) =>
          Number(state === 'stopped'),
        ),
        plant_store_deliveries_total: [...deliveries].map(([key, count]) =>
          sample(count, JSON.parse(key)),
        ),
      }
    },
    [Symbol.asyncDispose]() {
      stop()
      return running
    },
  }
}

type Line = readonly [level: 'debug' | 'warn' | 'error', words: string, outcome?: string]

/**
 * What is logged of each report, and the label `outcome` of the deliveries that it is
 * about, if any.
 */
const lines: Readonly<Record<CourierReport['event'], Line>> = {
  delivered: ['debug', 'plants were announced', 'received'],
  'attempt-failed': ['warn', 'an announcement failed, and is tried again', 'failed'],
  'given-up': [
    'error',
    'an announcement was given up: see plant-store webhook log',
    'failed',
  ],
  stopped: [
    'error',
    'a webhook is stopped, and misses new plants: see plant-store webhook retry',
  ],
  removed: ['warn', 'a webhook answered 410 and was removed'],
}

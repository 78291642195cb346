import { setTimeout } from 'node:timers/promises'
import type { Storage } from '@plant-store/persistence'
import {
  Courier,
  type CourierReport,
  type Outbox,
  type Post,
  type WebhookFigures,
  type WebhookId,
} from '@plant-store/webhooks'
import type { Level, Logger } from 'pino'
import { type Samples, sample } from '../telemetry/metrics.ts'

/**
 * The share of the shutdown timeout for deliveries in progress. Requests are answered
 * meanwhile.
 */
const stopShare = 0.5
/** The pause after a defect. */
const restartDelayMs = 1_000

/**
 * Starts to deliver to the webhooks, on this thread.
 *
 * @returns `stop`, which begins no more deliveries and resolves once those in progress
 *   have ended or their share of the time is over. Leases are returned by then, except in
 *   an outage of the store
 */
export function startCourier(
  { webhooks }: Storage,
  logger: Logger,
  shutdownTimeoutMs: number,
) {
  const { outbox } = webhooks
  const stopping = new AbortController()
  const aborting = new AbortController()
  const signals = { stop: stopping.signal, abort: aborting.signal }
  /** The deliveries of each webhook, counted by their outcome. */
  const deliveries = new Map<WebhookId, { received: number; failed: number }>()
  const report = ({ event, ...about }: CourierReport) => {
    const [level, outcome, message] = reportLines[event]
    logger[level](about, message)
    if (outcome !== undefined) {
      const counts = deliveries.get(about.webhook) ?? { received: 0, failed: 0 }
      counts[outcome] += 'count' in about ? about.count : 1
      deliveries.set(about.webhook, counts)
    }
  }
  const options = { outbox, webhooks, post: createPost(logger), report }

  const runUntilStopped = async () => {
    while (!stopping.signal.aborted) {
      try {
        await new Courier(options).run(signals)
      } catch (error) {
        // Requests are still answered.
        logger.error({ err: error }, 'the courier ended by a defect, and starts again')
        // A stop ends the pause.
        await setTimeout(restartDelayMs, undefined, { signal: signals.stop }).catch(
          () => {},
        )
      }
    }
  }
  const running = runUntilStopped()

  return {
    async stop(): Promise<void> {
      stopping.abort()
      const late = setTimeout(shutdownTimeoutMs * stopShare, undefined, { ref: false })
      void late.then(() => aborting.abort())
      await running
    },
    samples: async (): Promise<Samples> => ({
      ...(await sampleOutbox(outbox)),
      plant_store_deliveries_total: [...deliveries].flatMap(([webhook, counts]) => [
        sample(counts.received, { webhook, outcome: 'received' }),
        sample(counts.failed, { webhook, outcome: 'failed' }),
      ]),
    }),
  }
}

/** Returns the sender. Logs once of each URL that its answers are cut. */
function createPost(logger: Logger) {
  const excessive = new Set<string>()
  return async (delivery: Post) => {
    // Loaded with the first delivery, because many stores have no webhook.
    const { sendWebhook } = await import('./send-webhook.ts')
    const answer = await sendWebhook(delivery)
    const { url } = delivery
    if (answer.isExcessive && !excessive.has(url)) {
      excessive.add(url)
      logger.warn(
        { listener: new URL(url).origin },
        'a webhook sends more than its status, or does not end its answer: each plant waits for it',
      )
    }
    return answer
  }
}

/** The label `outcome` of the deliveries that a report is about, if any. */
type Outcome = 'received' | 'failed' | undefined

const reportLines: Readonly<
  Record<CourierReport['event'], readonly [Level, Outcome, message: string]>
> = {
  delivered: ['debug', 'received', 'plants were announced'],
  'attempt-failed': ['warn', 'failed', 'an announcement failed, and is tried again'],
  'given-up': [
    'error',
    'failed',
    'an announcement was given up: see plant-store webhook log',
  ],
  stopped: [
    'error',
    undefined,
    'a webhook is stopped, and misses new plants: see plant-store webhook retry',
  ],
  removed: ['warn', undefined, 'a webhook answered 410 and was removed'],
}

async function sampleOutbox(outbox: Outbox): Promise<Samples> {
  const figures = await outbox.figures()
  const sampleEach = (read: (figure: WebhookFigures) => number) =>
    figures.map(figure => sample(read(figure), { webhook: figure.webhook }))
  return {
    plant_store_announcements_waiting: sampleEach(({ waiting }) => waiting),
    plant_store_announcements_oldest_seconds: sampleEach(
      ({ oldestMs = 0 }) => oldestMs / 1000,
    ),
    plant_store_announcements_given_up: sampleEach(({ givenUp }) => givenUp),
    plant_store_announcements_stopped: sampleEach(({ state }) =>
      Number(state === 'stopped'),
    ),
  }
}

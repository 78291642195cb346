import { DomainError, type PlantAdded, parsePlant } from '@plant-store/domain'
import {
  type CourierReport,
  courierLimits,
  mintSecret,
  type Outbox,
  type Post,
  type Webhook,
  type WebhookId,
} from '@plant-store/webhooks'
import { type CourierLimits, createCourierWith } from '../src/courier.ts'
import { createMemoryOutbox } from './memory-outbox.ts'

export const minuteMs = 60_000
export const dayMs = 24 * 60 * minuteMs

export const added = (id: bigint, addedAt = new Date(0)): PlantAdded => ({
  plant: parsePlant({ id, name: `plant ${id}` }),
  version: `${BigInt.asUintN(64, id)}` as PlantAdded['version'],
  addedAt,
})

/** An outage, as a store rejects with. */
export const outage = () => new DomainError('store-unavailable', 'the store cannot be used')

export interface Attempt {
  readonly atMs: number
  readonly url: string
  readonly plant: bigint
}

/** A courier and an outbox on a clock that runs only while the courier waits. */
export function createVirtualWorld(
  answer: (url: string, plant: bigint, post: Post) => number | Promise<number>,
  limits: Partial<CourierLimits> = {},
  outboxOf: (right: Outbox) => Outbox = right => right,
) {
  const clock = { ms: 0 }
  const memory = createMemoryOutbox(() => clock.ms)
  const attempts: Attempt[] = []
  const posts: Post[] = []
  const reports: CourierReport[] = []
  const stop = new AbortController()
  const abort = new AbortController()
  let until = (): boolean => false
  const courierClock = {
    elapsed: () => clock.ms,
    async wait(ms: number) {
      await new Promise(setImmediate)
      if (until()) stop.abort()
      clock.ms += ms
      if (!(clock.ms < 30 * dayMs)) throw new Error('the courier never stops')
    },
  }
  const run = createCourierWith({ ...courierLimits, ...limits }, courierClock, {
    outbox: outboxOf(memory),
    webhooks: memory.webhooks,
    report: report => reports.push(report),
    async post(post) {
      const [, digits] = /"id":(-?\d+)/.exec(post.body) as RegExpExecArray
      const plant = BigInt(digits as string)
      attempts.push({ atMs: clock.ms, url: post.url, plant })
      posts.push(post)
      return answer(post.url, plant, post)
    },
  })
  const runUntil = (isOver: () => boolean) => {
    until = isOver
    return run({ stop: stop.signal, abort: abort.signal })
  }
  return {
    ...memory,
    clock,
    attempts,
    posts,
    reports,
    stop,
    abort,
    async addWebhook(name: string, secret = mintSecret()): Promise<WebhookId> {
      const id = name as WebhookId
      const webhook = { id, url: `https://${name}.example/`, allowsPrivate: false, createdAt: new Date(0) }
      await memory.webhooks.add(webhook, secret)
      return id
    },
    webhook: async (id: WebhookId): Promise<Webhook | undefined> =>
      (await memory.webhooks.list()).find(each => each.id === id),
    runUntil,
    /** Stops once this much time has passed. */
    runFor: (ms: number) => {
      const end = clock.ms + ms
      return runUntil(() => clock.ms >= end)
    },
  }
}

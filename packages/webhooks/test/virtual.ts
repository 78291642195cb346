import assert from 'node:assert/strict'
import { DomainError, parsePlant, type Version } from '@plant-store/domain'
import {
  Courier,
  type CourierReport,
  courierLimits,
  mintSecret,
  type Post,
  type PostAnswer,
  type WebhookEvent,
  type WebhookId,
} from '@plant-store/webhooks'
import { createMemoryStore } from '@plant-store/webhooks/testing'
import type { CourierLimits } from '../src/courier-limits.ts'

export const secondMs = 1_000
export const minuteMs = 60 * secondMs
export const hourMs = 60 * minuteMs
export const dayMs = 24 * hourMs

export const secret = mintSecret()

/** Returns the error of a store that cannot be used. */
export function outage(): DomainError {
  return new DomainError('store-unavailable', 'the store cannot be used')
}

/** Returns the outbox of a store in memory, with webhooks of these names. */
export function createOutbox(now: () => number, names: readonly string[]) {
  const { webhooks, announce } = createMemoryStore(now)
  for (const name of names) {
    const id = name as WebhookId
    const url = `https://${name}.example/`
    const events = ['added'] as const
    const webhook = { id, url, allowsPrivate: false, events, createdAt: new Date(0) }
    void webhooks.add(webhook, secret)
  }
  const announceVersion = (
    id: bigint,
    version: string,
    event: WebhookEvent = 'added',
  ) => {
    const plant = parsePlant({ id, name: `plant ${id}` })
    announce(event, { plant, version: version as Version })
  }
  return {
    ...webhooks.outbox,
    webhooks,
    announceVersion,
    /** Announces plants with these ids, as storing them does. */
    announce(...ids: readonly bigint[]) {
      for (const [n, id] of ids.entries()) {
        announceVersion(id, `${n} of ${id}`)
      }
    },
  }
}

interface Attempt extends Post {
  readonly atMs: number
  readonly plant: bigint
}

/** A number is the status of an answer without header fields. */
type Answer = number | (Partial<PostAnswer> & Pick<PostAnswer, 'status'>)

/** A courier and an outbox on a clock that runs only while the courier waits. */
export function createVirtualWorld(
  answer: (attempt: Attempt) => Answer | Promise<Answer>,
  limits: Partial<CourierLimits> = {},
  webhooks: readonly string[] = ['shop'],
) {
  const clock = { ms: 0 }
  const memory = createOutbox(() => clock.ms, webhooks)
  const attempts: Attempt[] = []
  const reports: CourierReport[] = []
  const stopping = new AbortController()
  const aborting = new AbortController()
  let until = (): boolean => false
  const courierClock = {
    elapsed: () => clock.ms,
    async wait(ms: number) {
      await new Promise(setImmediate)
      if (until()) {
        stopping.abort()
      }
      clock.ms += ms
      if (!(clock.ms < 30 * dayMs)) {
        throw new Error('the courier never stops')
      }
    },
  }
  const options = {
    outbox: memory,
    webhooks: memory.webhooks,
    report: (report: CourierReport) => void reports.push(report),
    async post(post: Post) {
      const digits = /"id":(-?\d+)/.exec(post.body)?.[1]
      assert(digits !== undefined, `the body has no id: ${post.body}`)
      const attempt = { ...post, atMs: clock.ms, plant: BigInt(digits) }
      attempts.push(attempt)
      const response = await answer(attempt)
      const fields = typeof response === 'number' ? { status: response } : response
      return { isExcessive: false, ...fields }
    },
  }
  const courier = new Courier(options, { ...courierLimits, ...limits }, courierClock)
  const runUntil = (isOver: () => boolean) => {
    until = isOver
    return courier.run({ stop: stopping.signal, abort: aborting.signal })
  }
  // The same object, so that a test can replace what the courier calls.
  return Object.assign(memory, {
    clock,
    attempts,
    reports,
    /** Returns the plants of all attempts, in their order. */
    plants: () => attempts.map(({ plant }) => plant),
    attemptsOf: (name: string) => attempts.filter(({ url }) => url.includes(name)),
    stopping,
    aborting,
    runUntil,
    /** Stops once this much time has passed. */
    runFor: (ms: number) => runUntil(() => clock.ms >= ms),
  })
}

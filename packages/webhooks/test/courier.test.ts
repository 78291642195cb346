import { setImmediate as turn } from 'node:timers/promises'
import { int64Max, int64Min } from '@plant-store/domain'
import {
  type ClaimOutcome,
  Courier,
  courierLimits,
  type Post,
  type WebhookId,
  webhookEvents,
} from '@plant-store/webhooks'
import { Webhook as Verifier } from 'standardwebhooks'
import { expect, test, vi } from 'vitest'
import {
  createOutbox,
  createVirtualWorld,
  dayMs,
  hourMs,
  minuteMs,
  outage,
  secondMs,
  secret,
} from './virtual.ts'

const webhook = 'shop'
/** The pauses between attempts, as documented. */
const retryDelaysMs = [
  5 * secondMs,
  5 * minuteMs,
  30 * minuteMs,
  ...[2, 5, 10, 14, 18, 24].map(hours => hours * hourMs),
]

/** Returns ids from 1. */
function plants(count: number) {
  return Array.from({ length: count }, (_, n) => BigInt(n + 1))
}

type World = ReturnType<typeof createVirtualWorld>

/** Returns a function that lists the outcomes of the claims of a world. */
function recordOutcomes(world: World): () => readonly ClaimOutcome[] {
  const { calls } = vi.spyOn(world, 'settle').mock
  return () => calls.map(([, outcome]) => outcome)
}

/** Expects durations with up to a fifth more, not all of them exact. */
function expectJitter(
  durationsMs: readonly (number | undefined)[],
  leastMs: readonly number[],
) {
  expect(durationsMs).toHaveLength(leastMs.length)
  expect(durationsMs).not.toEqual(leastMs)
  for (const [n, ms] of leastMs.entries()) {
    expect(durationsMs[n], `${n}`).toBeGreaterThanOrEqual(ms)
    expect(durationsMs[n], `${n}`).toBeLessThanOrEqual(1.2 * ms)
  }
}

test('each plant is delivered once, in order, signed, with every digit', async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: 0 })
  const world = createVirtualWorld(() => 204)
  const ids = [int64Max, int64Min, 0n, ...plants(300)]
  world.announce(...ids)

  await world.runFor(secondMs)

  expect(world.plants()).toEqual(ids)
  const [first] = world.attempts
  const name = 'plant 9223372036854775807'
  expect(first?.body).toBe(`{"id":9223372036854775807,"name":"${name}"}`)

  const verifier = new Verifier(secret)
  for (const { body, headers } of world.attempts) {
    expect(headers['webhook-timestamp'], body).toBe('0')
    expect(() => verifier.verify(body, headers), body).not.toThrow()
  }
  const messages = world.attempts.map(({ headers }) => headers['webhook-id'])
  expect(new Set(messages).size).toBe(ids.length)
  expect(await world.figures()).toMatchObject([{ waiting: 0, givenUp: 0 }])
  expect(world.reports).toMatchObject([
    { event: 'delivered', count: 100 },
    { event: 'delivered', count: 100 },
    { event: 'delivered', count: 100 },
    { event: 'delivered', count: 3 },
  ])
})

test('a delivery names its event in its signed id and in a field', async () => {
  const world = createVirtualWorld(() => 204)
  await world.webhooks.setEvents(webhook as WebhookId, webhookEvents)
  for (const event of webhookEvents) {
    world.announceVersion(1n, 'v1', event)
  }

  await world.runFor(secondMs)

  const named = world.attempts.map(({ headers }) => [
    headers['webhook-id'],
    headers['webhook-event'],
  ])
  expect(named).toEqual([
    ['added_v1', 'plant.added'],
    ['changed_v1', 'plant.changed'],
    ['removed_v1', 'plant.removed'],
  ])
})

test('a delivery is given up after three days', async () => {
  const world = createVirtualWorld(() => 500, { pollMs: minuteMs })
  const outcomes = recordOutcomes(world)
  world.announce(1n)

  await world.runFor(5 * dayMs)

  const waitsMs = outcomes().map(({ failed }) => failed?.retryInMs)
  expect(waitsMs.pop()).toBeUndefined()
  expectJitter(waitsMs, retryDelaysMs)
  const last = world.attempts.at(-1)
  expect(last?.atMs).toBeGreaterThan(3 * dayMs)
  expect(last?.atMs).toBeLessThan(4 * dayMs)

  const delivery = { webhook, plantId: '1', reason: 'answered 500' }
  expect(world.reports).toEqual([
    ...retryDelaysMs.map(() => ({ event: 'attempt-failed', ...delivery })),
    { event: 'given-up', ...delivery },
  ])
  expect(await world.figures()).toMatchObject([{ waiting: 0, givenUp: 1 }])
})

test.each([
  ['answers below 200', () => 199, 'answered 199'],
  ['answers 300', () => 300, 'answered 300'],
  [
    'cannot be reached',
    () => Promise.reject(new Error('connect ECONNREFUSED')),
    'connect ECONNREFUSED',
  ],
  ['sends controls', () => Promise.reject(new Error('\u001b[31m\n')), '?[31m?'],
  [
    'fails at length',
    () => Promise.reject(new Error('x'.repeat(9_999))),
    'x'.repeat(200),
  ],
])(
  'an attempt fails where the listener %s, and the reason is kept and reported',
  async (_, answer, reason) => {
    const world = createVirtualWorld(answer)
    const outcomes = recordOutcomes(world)
    world.announce(1n)

    await world.runUntil(() => world.reports.length > 0)

    expect(outcomes()).toMatchObject([{ delivered: [], failed: { reason } }])
    const report = { event: 'attempt-failed', webhook, plantId: '1', reason }
    expect(world.reports).toEqual([report])
  },
)

test('pauses of a failing listener double from a second to five minutes', async () => {
  const statusOf = (plant: bigint) => (plant === 12n ? 200 : 500)
  const limits = { retryDelaysMs: [dayMs] }
  const world = createVirtualWorld(({ plant }) => statusOf(plant), limits)
  const outcomes = recordOutcomes(world)
  world.announce(...plants(13))

  await world.runUntil(() => world.attempts.length === 13)

  const pausesMs = outcomes().map(({ failed }) => failed?.claimInMs)
  const leastPauses = [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 1]
  const leastMs = leastPauses.map(seconds => seconds * secondMs)
  expectJitter(pausesMs, leastMs)
})

test.each([
  ['stopped', 5 * dayMs, 500],
  ['active', 5 * dayMs - 1, 500],
  // It received something in between.
  ['active', 5 * dayMs, 200],
])(
  'a webhook is %s after %d ms of failures and an answer of %d',
  async (state, ms, first) => {
    const world = createVirtualWorld(({ plant }) => (plant === 1n ? first : 500))
    const { claim } = world
    vi.spyOn(world, 'claim').mockImplementation(async limits => {
      const rows = await claim(limits)
      return rows && { ...rows, failingForMs: ms }
    })
    world.announce(1n, 2n)

    await world.runUntil(() => world.reports.length > 0)

    expect(await world.figures()).toMatchObject([{ state }])
    const event = state === 'stopped' ? state : 'attempt-failed'
    const report = { event, webhook, reason: 'answered 500' }
    expect(world.reports.at(-1)).toMatchObject(report)
  },
)

test('410 removes the webhook and what waits for it, and no other', async () => {
  const answer = ({ url }: Post) => (url.includes('gone') ? 410 : 200)
  const world = createVirtualWorld(answer, {}, ['gone', 'shop'])
  world.announce(...plants(3))

  await world.runFor(secondMs)

  expect(world.attemptsOf('gone')).toHaveLength(1)
  expect(world.attemptsOf('shop')).toHaveLength(3)
  expect(await world.figures()).toMatchObject([{ webhook }])
  expect(world.reports).toContainEqual({ event: 'removed', webhook: 'gone' })
})

test('further claims wait while those under way hold too much text', async () => {
  const hang = Promise.withResolvers<number>()
  const limits = { heldTextBytesMax: 14 }
  const world = createVirtualWorld(() => hang.promise, limits, ['a', 'b', 'c'])
  // The name of this plant has seven bytes.
  world.announce(1n)

  const running = world.runFor(30 * secondMs)
  while (world.clock.ms < 10 * secondMs) {
    await turn()
  }
  expect(world.attempts).toHaveLength(2)

  hang.resolve(200)
  await running
  expect(world.attempts).toHaveLength(3)
})

test('as many webhooks are served at once as the limit says', async () => {
  let underWay = 0
  let most = 0
  const answer = async () => {
    most = Math.max(most, ++underWay)
    await turn()
    underWay--
    return 200
  }
  const names = ['a', 'b', 'c', 'd', 'e']
  const world = createVirtualWorld(answer, { webhooksMax: 3 }, names)
  world.announce(...plants(20))

  await world.runUntil(() => world.attempts.length === 100)

  expect(most).toBe(3)
})

test('a claim begins no delivery after its time', async () => {
  const world = createVirtualWorld(() => {
    world.clock.ms += 5 * secondMs
    return 200
  })
  world.announce(...plants(10))

  await world.runUntil(() => world.attempts.length === 10)

  expect(world.reports).toMatchObject([
    { event: 'delivered', count: 3 },
    { event: 'delivered', count: 3 },
    { event: 'delivered', count: 3 },
    { event: 'delivered', count: 1 },
  ])
})

test('a stop begins no more deliveries, and returns the lease', async () => {
  const world = createVirtualWorld(({ plant }) => {
    if (plant === 3n) {
      world.stopping.abort()
    }
    return 200
  })
  const outcomes = recordOutcomes(world)
  world.announce(...plants(5))

  await world.runUntil(() => false)

  expect(world.attempts).toHaveLength(3)
  expect(outcomes()).toEqual([{ delivered: [1n, 2n, 3n] }])
})

test('a stop waits, and an aborted delivery neither failed nor succeeded', async () => {
  const world = createVirtualWorld(async ({ plant, signal }) => {
    if (plant === 1n) {
      return 200
    }
    world.stopping.abort()
    for (let n = 0; n < 10; n++) {
      await turn()
    }
    world.aborting.abort()
    throw signal.reason
  })
  const outcomes = recordOutcomes(world)
  world.announce(1n, 2n)

  await world.runUntil(() => false)

  expect(outcomes()).toEqual([{ delivered: [1n] }])
})

test('an outage of the store passes, and only what it has kept is reported', async () => {
  const world = createVirtualWorld(({ plant }) => (plant === 1n ? 200 : 500))
  for (const method of ['claim', 'settle', 'figures'] as const) {
    vi.spyOn(world, method).mockRejectedValueOnce(outage())
  }
  world.announce(1n, 2n)

  await world.runUntil(() => world.reports.length > 0)

  expect(world.plants()).toEqual([1n, 2n, 1n, 2n])
  // The lease had to end.
  expect(world.attempts[2]?.atMs).toBeGreaterThanOrEqual(minuteMs)
  expect(world.reports).toMatchObject([
    { event: 'delivered' },
    { event: 'attempt-failed', plantId: '2' },
  ])
})

test.each([
  ['instead of a shorter one', hourMs, hourMs],
  ['but our own if that is longer', 2 * secondMs, 5 * minuteMs],
  ['for a day at most', 30 * dayMs, dayMs],
])('a listener gets the pause that it asks for, %s', async (_, askedMs, pauseMs) => {
  const limits = { retryDelaysMs: [5 * minuteMs] }
  const answer = () => ({ status: 503, retryAfterMs: askedMs })
  const world = createVirtualWorld(answer, limits)
  const outcomes = recordOutcomes(world)
  world.announce(1n)

  await world.runUntil(() => world.reports.length > 0)

  const failed = outcomes().map(outcome => outcome.failed)
  expectJitter(
    failed.map(attempt => attempt?.retryInMs),
    [pauseMs],
  )
  // Its other deliveries wait, too.
  expectJitter(
    failed.map(attempt => attempt?.claimInMs),
    [Math.min(askedMs, dayMs)],
  )
})

test('a listener with excessive answers gets a plant a second', async () => {
  const world = createVirtualWorld(() => ({ status: 200, isExcessive: true }))
  world.announce(...plants(4))

  await world.runUntil(() => world.attempts.length === 4)

  let lastMs = -secondMs
  for (const { atMs, plant } of world.attempts) {
    expect(atMs - lastMs, `the pause before plant ${plant}`).toBeGreaterThanOrEqual(
      secondMs,
    )
    lastMs = atMs
  }
})

test('a defect of a round ends the courier once the other rounds have ended', async () => {
  const answer = async ({ url }: Post) => {
    for (let n = 0; url.includes('slow') && n < 20; n++) {
      await turn()
    }
    return 200
  }
  const world = createVirtualWorld(answer, {}, ['slow', 'shop'])
  const { settle } = world
  vi.spyOn(world, 'settle').mockImplementation(async (claim, outcome) => {
    if (claim.webhook.id !== 'slow') {
      throw new TypeError('a defect')
    }
    return settle(claim, outcome)
  })
  world.announce(1n)

  await expect(world.runFor(minuteMs)).rejects.toThrow('a defect')

  expect(world.reports).toEqual([{ event: 'delivered', webhook: 'slow', count: 1 }])
})

test('a webhook is stopped if its deliveries are too many and increase', async () => {
  const world = createVirtualWorld(() => 200, { outboxRowsMax: 10 })
  const shop = { webhook: webhook as WebhookId, state: 'active', givenUp: 0 } as const
  const counts = [
    { ...shop, waiting: 13 },
    { ...shop, waiting: 12 },
    { ...shop, waiting: 8 },
    { ...shop, waiting: 9 },
    { ...shop, waiting: 4, givenUp: 6 },
    { ...shop, waiting: 11, state: 'stopped' },
  ] as const
  const figures = vi.spyOn(world, 'figures')
  for (const count of counts) {
    figures.mockResolvedValueOnce([count])
  }

  await world.runFor(minuteMs)

  expect(world.reports).toEqual([
    { event: 'stopped', webhook, reason: '10 deliveries wait or were given up' },
  ])
  expect(await world.figures()).toMatchObject([{ state: 'stopped' }])
})

test('without work it polls twice a second and counts every ten seconds', async () => {
  const world = createVirtualWorld(() => 200)
  const claim = vi.spyOn(world, 'claim')
  const figures = vi.spyOn(world, 'figures')

  await world.runFor(100 * secondMs)

  expect(claim).toHaveBeenCalledTimes(201)
  const bounds = { leaseMs: minuteMs, rowsMax: 100, textBytesMax: 65_536 }
  expect(claim).toHaveBeenCalledWith(bounds)
  expect(figures).toHaveBeenCalledTimes(11)
})

test('on the clock of the system it delivers, and stops while it waits', async () => {
  const outbox = createOutbox(Date.now, ['shop'])
  outbox.announce(1n)
  const { webhooks } = outbox
  const stop = new AbortController()
  const delivered = Promise.withResolvers<void>()
  const report = () => delivered.resolve()
  const limits = { ...courierLimits, pollMs: hourMs }
  const post = async () => ({ status: 200, isExcessive: false })
  const courier = new Courier({ outbox, webhooks, report, post }, limits)
  const running = courier.run({ stop: stop.signal, abort: stop.signal })
  await delivered.promise
  await turn()
  stop.abort()
  await running
})

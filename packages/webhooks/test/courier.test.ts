import { setImmediate as turn } from 'node:timers/promises'
import { courierLimits, mintSecret } from '@plant-store/webhooks'
import { Webhook as Verifier } from 'standardwebhooks'
import { afterEach, expect, test, vi } from 'vitest'
import { createCourierWith, systemClock } from '../src/courier.ts'
import { createMemoryOutbox } from './memory-outbox.ts'
import { added, createVirtualWorld, dayMs, minuteMs, outage } from './virtual.ts'

afterEach(() => void vi.useRealTimers())

const plants = (count: number, from = 1) => Array.from({ length: count }, (_, n) => BigInt(from + n))
const secondMs = 1_000
const hourMs = 60 * minuteMs
/** The pauses between attempts, as documented. */
const retryDelaysMs = [
  5 * secondMs,
  5 * minuteMs,
  30 * minuteMs,
  2 * hourMs,
  5 * hourMs,
  10 * hourMs,
  14 * hourMs,
  18 * hourMs,
  24 * hourMs,
]
/** For tests of days. */
const slow = { pollMs: minuteMs }

test('delivers each plant once, in the order as created, signed, with every digit', async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: 0 })
  const world = createVirtualWorld(() => 204)
  const secret = mintSecret()
  await world.addWebhook('shop', secret)
  const ids = [2n ** 63n - 1n, -(2n ** 63n), 0n, ...plants(300)]
  for (const plant of ids) world.announce(added(plant))
  await world.runFor(secondMs)
  expect(world.attempts.map(({ plant }) => plant)).toEqual(ids)
  expect(world.posts[0]?.body).toBe('{"id":9223372036854775807,"name":"plant 9223372036854775807"}')
  for (const { body, headers } of world.posts) {
    expect(headers['webhook-timestamp']).toBe('0')
    expect(() => new Verifier(secret).verify(body, headers)).not.toThrow()
  }
  expect(new Set(world.posts.map(({ headers }) => headers['webhook-id'])).size).toBe(ids.length)
  expect(await world.figures()).toMatchObject([{ waiting: 0, givenUp: 0 }])
  const counts = world.reports.map(report => (report.event === 'delivered' ? report.count : undefined))
  expect(counts).toEqual([100, 100, 100, 3])
})

test('a delivery that fails waits, the others go on, and it is tried again under its id', async () => {
  let failures = 2
  const world = createVirtualWorld((_, plant) => (plant === 2n && failures-- > 0 ? 500 : 200))
  const id = await world.addWebhook('shop')
  for (const plant of plants(4)) world.announce(added(plant))
  await world.runUntil(() => world.attempts.length === 6)
  expect(world.attempts.map(({ plant }) => plant)).toEqual([1n, 2n, 3n, 4n, 2n, 2n])
  expect(new Set(world.posts.map(({ headers }) => headers['webhook-id'])).size).toBe(4)
  const failed = world.reports.filter(({ event }) => event === 'attempt-failed')
  const report = { event: 'attempt-failed', webhook: id, reason: 'answered 500', plantId: '2' }
  expect(failed).toEqual([report, report])
})

test.each([
  ['answers 500', () => 500, 'answered 500'],
  ['answers below 200', () => 199, 'answered 199'],
  ['answers 300', () => 300, 'answered 300'],
  ['cannot be reached', () => Promise.reject(new Error('connect ECONNREFUSED')), 'connect ECONNREFUSED'],
  ['sends controls', () => Promise.reject(new Error('\u001b[31m\n')), '?[31m?'],
  ['fails at length', () => Promise.reject(new Error('x'.repeat(9_999))), 'x'.repeat(200)],
])(
  'gives up after three days where the listener %s, and keeps it for the operator',
  async (_, answer, reason) => {
    const waits: number[] = []
    const world = createVirtualWorld(answer, slow, right => ({
      ...right,
      settle(claim, outcome) {
        waits.push(outcome.failed?.retryInMs ?? 0)
        return right.settle(claim, outcome)
      },
    }))
    const id = await world.addWebhook('shop')
    world.announce(added(1n))
    await world.runFor(10 * dayMs)
    const times = world.attempts.map(({ atMs }) => atMs)
    expect(times).toHaveLength(retryDelaysMs.length + 1)
    for (const [n, delayMs] of retryDelaysMs.entries()) {
      const waitedMs = (times[n + 1] as number) - (times[n] as number)
      expect(waitedMs).toBeGreaterThanOrEqual(delayMs)
      expect(waitedMs).toBeLessThanOrEqual(delayMs * 1.2 + 2 * minuteMs)
      expect(waits[n]).toBeGreaterThanOrEqual(delayMs)
      expect(waits[n]).toBeLessThanOrEqual(delayMs * 1.2)
    }
    // Each at another moment than all others that failed with it.
    expect(waits.some((ms, n) => ms !== retryDelaysMs[n] && ms > 0)).toBe(true)
    expect(world.reports.filter(({ event }) => event === 'delivered')).toEqual([])
    expect(times.at(-1)).toBeGreaterThan(3 * dayMs)
    expect(times.at(-1)).toBeLessThan(4 * dayMs)
    const about = { webhook: id, plantId: '1', reason }
    expect(world.reports).toEqual([
      ...retryDelaysMs.map(() => ({ event: 'attempt-failed', ...about })),
      { event: 'given-up', ...about },
    ])
    expect(await world.deliveriesOf(id, 10)).toMatchObject([{ reason, attempts: times.length }])
    expect(await world.figures()).toMatchObject([{ waiting: 0, givenUp: 1 }])

    await world.webhooks.retry(id)
    expect(await world.figures()).toMatchObject([{ waiting: 1, givenUp: 0 }])
  },
)

test('of a listener that fails, few of many deliveries are tried', async () => {
  const world = createVirtualWorld(() => 500, slow)
  const id = await world.addWebhook('shop')
  for (const plant of plants(3_000)) world.announce(added(plant))
  await world.runFor(60 * minuteMs)
  expect(world.attempts.length).toBeGreaterThan(8)
  expect(world.attempts.length).toBeLessThan(30)
  expect(await world.webhook(id)).toMatchObject({ state: 'active', failingSince: new Date(0) })
})

test.each([-6 * dayMs, 0, 6 * dayMs])(
  'is stopped after five days by the clock of the store, not by its own that is set by %i ms',
  async aheadMs => {
    const world = createVirtualWorld(() => 500, slow)
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + aheadMs })
    const id = await world.addWebhook('shop')
    for (const plant of plants(3_000)) world.announce(added(plant))
    await world.runUntil(() => world.reports.some(({ event }) => event === 'stopped'))
    expect(world.clock.ms).toBeGreaterThan(5 * dayMs)
    expect(world.clock.ms).toBeLessThan(5.1 * dayMs)
    expect(await world.webhook(id)).toMatchObject({ state: 'stopped' })
  },
)

test('reports a failed attempt only once the store has it', async () => {
  let outages = 1
  const world = createVirtualWorld(
    () => 500,
    {},
    right => ({
      ...right,
      settle: (claim, outcome) => (outages-- > 0 ? Promise.reject(outage()) : right.settle(claim, outcome)),
    }),
  )
  await world.addWebhook('shop')
  world.announce(added(1n))
  await world.runUntil(() => world.reports.length > 0)
  expect(world.attempts).toHaveLength(2)
  expect(await world.figures()).toMatchObject([{ waiting: 1 }])
})

test('a stopped one collects nothing, and delivers what waited once it is retried', async () => {
  let isDown = true
  const world = createVirtualWorld(() => (isDown ? 500 : 200), { stopAfterMs: 0 })
  const id = await world.addWebhook('shop')
  world.announce(added(1n))
  await world.runUntil(() => {
    if (world.clock.ms >= minuteMs && isDown) {
      expect(world.attempts).toHaveLength(1)
      isDown = false
      world.announce(added(2n))
      world.webhooks.retry(id)
      world.announce(added(3n))
    }
    return world.attempts.length > 2
  })
  expect(world.attempts.map(({ plant }) => plant)).toEqual([1n, 1n, 3n])
  expect(world.reports).toContainEqual({ event: 'stopped', webhook: id, reason: 'answered 500' })
  expect(await world.figures()).toMatchObject([{ state: 'active', missed: 1 }])
  expect(world.clock.ms).toBeLessThan(minuteMs + 2 * secondMs)
})

test('410 removes the webhook and what waits for it, and no other', async () => {
  const world = createVirtualWorld(url => (url.includes('gone') ? 410 : 200))
  const gone = await world.addWebhook('gone')
  const shop = await world.addWebhook('shop')
  for (const plant of plants(3)) world.announce(added(plant))
  await world.runFor(secondMs)
  expect(world.attempts.filter(({ url }) => url.includes('gone'))).toHaveLength(1)
  expect(world.attempts).toHaveLength(4)
  expect(await world.webhooks.list()).toMatchObject([{ id: shop }])
  expect(world.reports).toContainEqual({ event: 'removed', webhook: gone })
})

test('many listeners that hang hold up no other, and each has one delivery under way', async () => {
  const hang = Promise.withResolvers<number>()
  const world = createVirtualWorld(url => (url.includes('hangs') ? hang.promise : 200))
  for (let n = 0; n < 40; n++) await world.addWebhook(`hangs-${n}`)
  await world.addWebhook('shop')
  for (const plant of plants(500)) world.announce(added(plant))
  const running = world.runFor(30 * secondMs)
  while (world.reports.length < 5) await turn()
  expect(world.attempts.filter(({ url }) => url.includes('shop'))).toHaveLength(500)
  expect(world.attempts.filter(({ url }) => url.includes('hangs'))).toHaveLength(40)
  hang.resolve(200)
  await running
})

test('waits with further claims while those under way hold too much text', async () => {
  const hang = Promise.withResolvers<number>()
  const world = createVirtualWorld(() => hang.promise, { heldTextBytesMax: 14 })
  for (const name of ['a', 'b', 'c']) await world.addWebhook(name)
  // Of seven bytes.
  world.announce(added(1n))
  const running = world.runUntil(() => world.clock.ms >= 30 * secondMs)
  while (world.clock.ms < 10 * secondMs) await turn()
  expect(world.attempts).toHaveLength(2)
  hang.resolve(200)
  await running
  expect(world.attempts).toHaveLength(3)
})

test('serves its limit of webhooks at once, and no more', async () => {
  let underWay = 0
  let most = 0
  const world = createVirtualWorld(
    async () => {
      most = Math.max(most, ++underWay)
      await turn()
      underWay--
      return 200
    },
    { webhooksMax: 3 },
  )
  for (const name of ['a', 'b', 'c', 'd', 'e']) await world.addWebhook(name)
  for (const plant of plants(20)) world.announce(added(plant))
  await world.runUntil(() => world.attempts.length === 100)
  expect(most).toBe(3)
})

test('a claim begins nothing after its time, so that its lease outlasts what it began', async () => {
  const world = createVirtualWorld(async () => {
    world.clock.ms += 5 * secondMs
    return 200
  })
  await world.addWebhook('shop')
  for (const plant of plants(10)) world.announce(added(plant))
  await world.runUntil(() => world.attempts.length === 10)
  const counts = world.reports.map(report => (report.event === 'delivered' ? report.count : undefined))
  expect(counts).toEqual([3, 3, 3, 1])
})

test('a stop returns the lease, and what was delivered is not delivered again', async () => {
  const world = createVirtualWorld((_, plant) => {
    if (plant === 3n) world.stop.abort()
    return 200
  })
  await world.addWebhook('shop')
  for (const plant of plants(5)) world.announce(added(plant))
  await world.runUntil(() => false)
  expect(world.attempts).toHaveLength(3)
  const rest = await world.claim({ leaseMs: 1, rowsMax: 100, textBytesMax: 1 << 20 })
  expect(rest?.deliveries.map(({ added }) => added.plant.id)).toEqual([4n, 5n])
})

test('what is given up at the end has neither failed nor been delivered', async () => {
  const world = createVirtualWorld((_, plant, { signal }) =>
    plant === 1n
      ? 200
      : new Promise((_, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason))
          world.stop.abort()
          setImmediate(() => world.abort.abort())
        }),
  )
  const id = await world.addWebhook('shop')
  for (const plant of plants(2)) world.announce(added(plant))
  await world.runUntil(() => false)
  expect(await world.webhook(id)).toMatchObject({ failures: 0 })
  const rest = await world.claim({ leaseMs: 1, rowsMax: 100, textBytesMax: 1 << 20 })
  expect(rest?.deliveries).toMatchObject([{ attempts: 0, added: { plant: { id: 2n } } }])
})

test('an outage of the store passes, and a defect does not', async () => {
  let outages = 5
  const world = createVirtualWorld(
    () => 200,
    {},
    right => ({
      ...right,
      claim: limits => (outages-- > 0 ? Promise.reject(outage()) : right.claim(limits)),
      settle: (claim, outcome) => (outages-- > -3 ? Promise.reject(outage()) : right.settle(claim, outcome)),
      figures: () => (outages > 0 ? Promise.reject(outage()) : right.figures()),
    }),
  )
  await world.addWebhook('shop')
  world.announce(added(1n))
  await world.runFor(2 * minuteMs)
  // The first settlement failed, and the lease had to end.
  expect(world.attempts).toHaveLength(2)
  expect(world.attempts[1]?.atMs).toBeGreaterThanOrEqual(minuteMs)
  expect(await world.figures()).toMatchObject([{ waiting: 0 }])

  const broken = createVirtualWorld(
    () => 200,
    {},
    right => ({
      ...right,
      claim: () => Promise.reject(new TypeError('a defect')),
    }),
  )
  await expect(broken.runFor(minuteMs)).rejects.toThrow('a defect')
})

test('a webhook is stopped when its deliveries are too many and increase, and goes on while they decrease', async () => {
  let isDown = true
  let isAway = false
  const world = createVirtualWorld(
    () => {
      if (!isDown) world.clock.ms += 5 * secondMs
      return isDown ? 500 : 200
    },
    { retryDelaysMs: [], outboxRowsMax: 10, claimRowsMax: 1 },
    right => ({ ...right, claim: async limits => (isAway ? undefined : right.claim(limits)) }),
  )
  const id = await world.addWebhook('shop')
  const announce = (count: number, from: number) =>
    plants(count, from).map(plant => world.announce(added(plant)))
  announce(2, 1)
  const steps = new Map<number, () => void>([
    [
      15 * secondMs,
      () => {
        isAway = true
        announce(7, 3)
      },
    ],
    [25 * secondMs, () => announce(3, 10)],
    [35 * secondMs, () => announce(1, 13)],
    [
      45 * secondMs,
      () => {
        isDown = isAway = false
        world.webhooks.retry(id)
      },
    ],
  ])
  await world.runUntil(() => {
    steps.get(world.clock.ms)?.()
    return world.clock.ms > 2 * minuteMs
  })
  const stops = world.reports.filter(({ event }) => event === 'stopped')
  expect(stops).toEqual([{ event: 'stopped', webhook: id, reason: '12 deliveries wait or were given up' }])
  expect(await world.figures()).toMatchObject([{ state: 'active', missed: 1, waiting: 0, givenUp: 0 }])
})

test.each([
  ['five days', 'stopped', 5 * dayMs],
  ['a millisecond less', 'active', 5 * dayMs - 1],
])('after failures for %s, a webhook is %s', async (_, state, failingForMs) => {
  const world = createVirtualWorld(
    () => 500,
    {},
    right => ({
      ...right,
      claim: async limits => {
        const claim = await right.claim(limits)
        return claim && { ...claim, failingForMs }
      },
    }),
  )
  const id = await world.addWebhook('shop')
  world.announce(added(1n))
  await world.runUntil(() => world.reports.length > 0)
  expect(await world.webhook(id)).toMatchObject({ state })
})

test('the pauses of a listener that received something begin at a second again', async () => {
  const pausesMs: number[] = []
  const world = createVirtualWorld(
    (_, plant) => (plant === 5n ? 200 : 500),
    { retryDelaysMs: [dayMs] },
    right => ({
      ...right,
      settle(claim, outcome) {
        pausesMs.push(outcome.failed?.claimInMs ?? 0)
        return right.settle(claim, outcome)
      },
    }),
  )
  await world.addWebhook('shop')
  for (const plant of plants(6)) world.announce(added(plant))
  await world.runUntil(() => world.attempts.some(({ plant }) => plant === 6n))
  for (const [n, delayMs] of [1_000, 2_000, 4_000, 8_000, 1_000].entries()) {
    expect(pausesMs[n]).toBeGreaterThanOrEqual(delayMs)
    expect(pausesMs[n]).toBeLessThanOrEqual(1.2 * delayMs)
  }
})

test('without work it asks twice a second for some, and counts every ten seconds', async () => {
  const asked: number[] = []
  const counted: number[] = []
  const world = createVirtualWorld(
    () => 200,
    {},
    right => ({
      ...right,
      async claim() {
        asked.push(world.clock.ms)
        return undefined
      },
      async figures() {
        counted.push(world.clock.ms)
        return []
      },
    }),
  )
  await world.runFor(30 * secondMs)
  expect(asked.slice(0, 4)).toEqual([0, 500, 1_000, 1_500])
  expect(counted.slice(0, 3)).toEqual([0, 10_000, 20_000])
})

test('the courier runs on the clock of the system, and stops while it waits', async () => {
  const { webhooks, announce, ...outbox } = createMemoryOutbox()
  const url = 'https://shop.example/'
  const createdAt = new Date()
  await webhooks.add({ id: 'shop' as never, url, allowsPrivate: false, createdAt }, mintSecret())
  announce(added(1n))
  const sent = Promise.withResolvers<string | undefined>()
  const stop = new AbortController()
  const running = createCourierWith({ ...courierLimits, pollMs: hourMs }, systemClock, {
    outbox,
    webhooks,
    report: () => {},
    async post({ headers }) {
      sent.resolve(headers['webhook-timestamp'])
      return 200
    },
  })({ stop: stop.signal, abort: stop.signal })
  expect(Number(await sent.promise)).toBeGreaterThanOrEqual(Math.floor(createdAt.getTime() / 1_000))
  while ((await outbox.figures())[0]?.waiting !== 0) await turn()
  stop.abort()
  await running
})

test('a listener that received something is not stopped for what failed before', async () => {
  const world = createVirtualWorld((_, plant) => (plant === 2n ? 200 : 500), { stopAfterMs: minuteMs })
  const id = await world.addWebhook('shop')
  world.announce(added(1n))
  let isAnnounced = false
  await world.runUntil(() => {
    if (!isAnnounced && world.clock.ms > 2 * minuteMs) {
      isAnnounced = true
      for (const plant of [2n, 3n]) world.announce(added(plant, new Date(world.clock.ms)))
    }
    return world.attempts.some(({ plant }) => plant === 3n)
  })
  expect(await world.webhook(id)).toMatchObject({ state: 'active', failures: 1 })
})

test('the courier has stopped only once what was under way has ended', async () => {
  const answer = Promise.withResolvers<number>()
  const world = createVirtualWorld(() => {
    world.stop.abort()
    return answer.promise
  })
  await world.addWebhook('shop')
  world.announce(added(1n))
  let hasStopped = false
  const running = world
    .runUntil(() => false)
    .then(() => {
      hasStopped = true
    })
  while (world.attempts.length === 0) await turn()
  for (let n = 0; n < 10; n++) await turn()
  expect(hasStopped).toBe(false)
  answer.resolve(200)
  await running
  expect(await world.figures()).toMatchObject([{ waiting: 0 }])
})

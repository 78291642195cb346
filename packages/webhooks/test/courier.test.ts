import { setImmediate as turn } from 'node:timers/promises'
import { Courier, courierLimits } from '@plant-store/webhooks'
import { Webhook as Verifier } from 'standardwebhooks'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { createMemoryOutbox, outage, secret } from './memory-outbox.ts'
import { createVirtualWorld, dayMs, hourMs, minuteMs, secondMs } from './virtual.ts'

afterEach(() => void vi.useRealTimers())

const plants = (count: number) => Array.from({ length: count }, (_, n) => BigInt(n + 1))
const webhook = 'shop'
/** The pauses between attempts, as documented. */
const retryDelaysMs = [
  5 * secondMs,
  5 * minuteMs,
  30 * minuteMs,
  ...[2, 5, 10, 14, 18, 24].map(hours => hours * hourMs),
]

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
  const ids = [2n ** 63n - 1n, -(2n ** 63n), 0n, ...plants(300)]
  world.announce(...ids)
  await world.runFor(secondMs)
  expect(world.attempts.map(({ plant }) => plant)).toEqual(ids)
  expect(world.attempts[0]?.body).toBe(
    '{"id":9223372036854775807,"name":"plant 9223372036854775807"}',
  )
  for (const { body, headers } of world.attempts) {
    expect(headers['webhook-timestamp'], body).toBe('0')
    expect(() => new Verifier(secret).verify(body, headers), body).not.toThrow()
  }
  expect(new Set(world.attempts.map(({ headers }) => headers['webhook-id'])).size).toBe(
    ids.length,
  )
  expect(await world.figures()).toMatchObject([{ waiting: 0, givenUp: 0 }])
  expect(world.reports).toMatchObject(
    [100, 100, 100, 3].map(count => ({ event: 'delivered', count })),
  )
})

test('a failed delivery waits while others go on, and keeps its id', async () => {
  let failures = 2
  const world = createVirtualWorld(({ plant }) =>
    plant === 2n && failures-- > 0 ? 500 : 200,
  )
  world.announce(...plants(4))
  await world.runUntil(() => world.attempts.length === 6)
  expect(world.attempts.map(({ plant }) => plant)).toEqual([1n, 2n, 3n, 4n, 2n, 2n])
  expect(new Set(world.attempts.map(({ headers }) => headers['webhook-id'])).size).toBe(4)
})

test('gives up after three days', async () => {
  const world = createVirtualWorld(() => 500, { pollMs: minuteMs })
  const settle = vi.spyOn(world, 'settle')
  world.announce(1n)
  await world.runFor(10 * dayMs)
  const waitsMs = settle.mock.calls.map(([, { failed }]) => failed?.retryInMs)
  expect(waitsMs.pop()).toBeUndefined()
  expectJitter(waitsMs, retryDelaysMs)
  expect(world.attempts.at(-1)?.atMs).toBeGreaterThan(3 * dayMs)
  expect(world.attempts.at(-1)?.atMs).toBeLessThan(4 * dayMs)
  const about = { webhook, plantId: '1', reason: 'answered 500' }
  expect(world.reports).toEqual([
    ...retryDelaysMs.map(() => ({ event: 'attempt-failed', ...about })),
    { event: 'given-up', ...about },
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
    const settle = vi.spyOn(world, 'settle')
    world.announce(1n)
    await world.runUntil(() => world.reports.length > 0)
    expect(settle.mock.calls).toMatchObject([[{}, { delivered: [], failed: { reason } }]])
    expect(world.reports).toEqual([
      { event: 'attempt-failed', webhook, plantId: '1', reason },
    ])
  },
)

test('pauses of a failing listener double from a second to five minutes', async () => {
  const world = createVirtualWorld(({ plant }) => (plant === 12n ? 200 : 500), {
    retryDelaysMs: [dayMs],
  })
  const settle = vi.spyOn(world, 'settle')
  world.announce(...plants(13))
  await world.runUntil(() => world.attempts.length === 13)
  const pausesMs = settle.mock.calls.map(([, { failed }]) => failed?.claimInMs)
  const seconds = [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 1]
  expectJitter(
    pausesMs,
    seconds.map(each => each * secondMs),
  )
})

test.each([
  {
    state: 'stopped',
    time: 'five days',
    failingForMs: 5 * dayMs,
    first: 500,
    event: 'stopped',
  },
  {
    state: 'active',
    time: 'a millisecond less',
    failingForMs: 5 * dayMs - 1,
    first: 500,
    event: 'attempt-failed',
  },
  {
    state: 'active',
    time: 'five days, until it received something',
    failingForMs: 5 * dayMs,
    first: 200,
    event: 'attempt-failed',
  },
])(
  'is $state after failures for $time, as the store counts them',
  async ({ state, failingForMs, first, event }) => {
    const world = createVirtualWorld(({ plant }) => (plant === 1n ? first : 500))
    const { claim } = world
    vi.spyOn(world, 'claim').mockImplementation(async limits => {
      const claimed = await claim(limits)
      return claimed && { ...claimed, failingForMs }
    })
    world.announce(1n, 2n)
    await world.runUntil(() => world.reports.length > 0)
    expect(await world.figures()).toMatchObject([{ state }])
    expect(world.reports.at(-1)).toMatchObject({ event, webhook, reason: 'answered 500' })
  },
)

test('410 removes the webhook and what waits for it, and no other', async () => {
  const world = createVirtualWorld(({ url }) => (url.includes('gone') ? 410 : 200), {}, [
    'gone',
    'shop',
  ])
  world.announce(...plants(3))
  await world.runFor(secondMs)
  expect(world.attempts.filter(({ url }) => url.includes('gone'))).toHaveLength(1)
  expect(world.attempts).toHaveLength(4)
  expect(await world.figures()).toMatchObject([{ webhook }])
  expect(world.reports).toContainEqual({ event: 'removed', webhook: 'gone' })
})

test('listeners that hang hold up no other, with one delivery each', async () => {
  const hang = Promise.withResolvers<number>()
  const hanging = Array.from({ length: 40 }, (_, n) => `hangs-${n}`)
  const world = createVirtualWorld(
    ({ url }) => (url.includes('hangs') ? hang.promise : 200),
    {},
    [...hanging, 'shop'],
  )
  world.announce(...plants(120))
  const running = world.runFor(30 * secondMs)
  while (world.reports.length < 2) {
    await turn()
  }
  expect(world.attempts.filter(({ url }) => url.includes('shop'))).toHaveLength(120)
  expect(world.attempts.filter(({ url }) => url.includes('hangs'))).toHaveLength(
    hanging.length,
  )
  hang.resolve(200)
  await running
})

test('waits with further claims while those under way hold too much text', async () => {
  const hang = Promise.withResolvers<number>()
  const world = createVirtualWorld(() => hang.promise, { heldTextBytesMax: 14 }, [
    'a',
    'b',
    'c',
  ])
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

test('serves its limit of webhooks at once, and no more', async () => {
  let underWay = 0
  let most = 0
  const answer = async () => {
    most = Math.max(most, ++underWay)
    await turn()
    underWay--
    return 200
  }
  const world = createVirtualWorld(answer, { webhooksMax: 3 }, ['a', 'b', 'c', 'd', 'e'])
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
  expect(world.reports).toMatchObject(
    [3, 3, 3, 1].map(count => ({ event: 'delivered', count })),
  )
})

test('a stop begins no more deliveries, and returns the lease', async () => {
  const world = createVirtualWorld(({ plant }) => {
    if (plant === 3n) {
      world.stopping.abort()
    }
    return 200
  })
  const settle = vi.spyOn(world, 'settle')
  world.announce(...plants(5))
  await world.runUntil(() => false)
  expect(world.attempts).toHaveLength(3)
  expect(settle.mock.calls).toEqual([[expect.anything(), { delivered: [0n, 1n, 2n] }]])
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
  const settle = vi.spyOn(world, 'settle')
  world.announce(1n, 2n)
  await world.runUntil(() => false)
  expect(settle.mock.calls).toEqual([[expect.anything(), { delivered: [0n] }]])
})

test('an outage of the store passes, and only what it has kept is reported', async () => {
  const world = createVirtualWorld(({ plant }) => (plant === 1n ? 200 : 500))
  for (const method of ['claim', 'settle', 'figures'] as const) {
    vi.spyOn(world, method).mockRejectedValueOnce(outage())
  }
  world.announce(1n, 2n)
  await world.runUntil(() => world.reports.length > 0)
  expect(world.attempts.map(({ plant }) => plant)).toEqual([1n, 2n, 1n, 2n])
  // The lease had to end.
  expect(world.attempts[2]?.atMs).toBeGreaterThanOrEqual(minuteMs)
  expect(world.reports).toMatchObject([
    { event: 'delivered' },
    { event: 'attempt-failed', plantId: '2' },
  ])
})

describe('a listener that asks for a pause', () => {
  test.each([
    ['gets it instead of a shorter one', hourMs, 5 * minuteMs, hourMs],
    ['gets our own if that is longer', 2 * secondMs, 5 * minuteMs, 5 * minuteMs],
    ['gets a day at most', 30 * dayMs, 5 * minuteMs, dayMs],
  ])('%s', async (_, retryAfterMs, ownMs, pauseMs) => {
    const world = createVirtualWorld(() => ({ status: 503, retryAfterMs }), {
      retryDelaysMs: [ownMs],
    })
    const settle = vi.spyOn(world, 'settle')
    world.announce(1n)

    await world.runUntil(() => world.reports.length > 0)

    expectJitter(
      settle.mock.calls.map(([, { failed }]) => failed?.retryInMs),
      [pauseMs],
    )
  })

  test('gets it for all its deliveries', async () => {
    const world = createVirtualWorld(({ plant }) =>
      plant === 1n ? { status: 429, retryAfterMs: hourMs } : 200,
    )
    world.announce(1n, 2n)

    await world.runUntil(() => world.attempts.length === 2)

    expect(world.attempts[1]?.atMs).toBeGreaterThanOrEqual(hourMs)
  })

  test('gets none if it received the plant', async () => {
    const world = createVirtualWorld(() => ({ status: 200, retryAfterMs: hourMs }))
    world.announce(1n, 2n)

    await world.runFor(secondMs)

    expect(world.attempts).toHaveLength(2)
  })
})

test('a listener with excessive answers gets a plant a second', async () => {
  const world = createVirtualWorld(() => ({ status: 200, isExcessive: true }))
  world.announce(...plants(4))

  await world.runUntil(() => world.attempts.length === 4)

  const beginsMs = world.attempts.map(({ atMs }) => atMs)
  const pausesMs = beginsMs.slice(1).map((atMs, n) => atMs - (beginsMs[n] ?? 0))
  for (const [n, pauseMs] of pausesMs.entries()) {
    expect(pauseMs, `pause ${n}`).toBeGreaterThanOrEqual(secondMs)
  }
})

test('a defect of a round ends the courier once the other rounds have ended', async () => {
  const world = createVirtualWorld(
    async ({ url }) => {
      if (url.includes('slow')) {
        for (let n = 0; n < 20; n++) {
          await turn()
        }
      }
      return 200
    },
    {},
    ['slow', 'shop'],
  )
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

test('a defect of the store ends the courier', async () => {
  const world = createVirtualWorld(() => 200)
  vi.spyOn(world, 'claim').mockRejectedValue(new TypeError('a defect'))
  await expect(world.runFor(minuteMs)).rejects.toThrow('a defect')
})

test('a webhook is stopped if its deliveries are too many and increase', async () => {
  const world = createVirtualWorld(() => 200, { outboxRowsMax: 10 })
  const figures = vi.spyOn(world, 'figures')
  for (const [waiting, givenUp, state] of [
    [13, 0, 'active'],
    [12, 0, 'active'],
    [8, 0, 'active'],
    [9, 0, 'active'],
    [4, 6, 'active'],
    [11, 0, 'stopped'],
  ] as const) {
    figures.mockResolvedValueOnce([
      { webhook: webhook as never, waiting, givenUp, state },
    ])
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
  expect(claim).toHaveBeenCalledWith({
    leaseMs: minuteMs,
    rowsMax: 100,
    textBytesMax: 65_536,
  })
  expect(figures).toHaveBeenCalledTimes(11)
})

test('on the clock of the system it delivers, and stops while it waits', async () => {
  const outbox = createMemoryOutbox(Date.now, ['shop'])
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

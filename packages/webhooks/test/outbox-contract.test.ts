import type { Plant, PlantId, PlantVersion } from '@plant-store/domain'
import type { Claim, Outbox, WebhookId, WebhookRepository } from '@plant-store/webhooks'
import { type AnnouncingStore, createMemoryOutbox, outboxContract } from '@plant-store/webhooks/testing'
import { describe, expect, test } from 'vitest'

function open(): AnnouncingStore {
  const outbox = createMemoryOutbox()
  let versions = 0
  const add = async (plant: Plant) =>
    outbox.announce({ plant, version: `${++versions}` as PlantVersion, addedAt: new Date() })
  return { webhooks: outbox.webhooks, outbox, add }
}

describe('the outbox in memory keeps the contract', () => {
  test.each(outboxContract)('$name', ({ run }) => run(open()))
})

type Break = (right: AnnouncingStore) => {
  webhooks?: Partial<WebhookRepository>
  outbox?: Partial<Outbox>
  add?: AnnouncingStore['add']
}
const claiming =
  (change: (claim: Claim) => Partial<Claim>): Break =>
  ({ outbox }) => ({
    outbox: {
      async claim(limits) {
        const claim = await outbox.claim(limits)
        return claim && { ...claim, ...change(claim) }
      },
    },
  })
const a = 'a' as WebhookId

const broken: Record<string, Break> = {
  'announces nothing': () => ({ add: async () => {} }),
  'announces twice': ({ add }) => ({ add: async plant => [await add(plant), await add(plant)] }),
  'rounds ids': ({ add }) => ({
    add: plant => add({ ...plant, id: BigInt(Number(plant.id)) as PlantId }),
  }),
  'forgets tags': ({ add }) => ({ add: ({ tag: _, ...plant }) => add(plant) }),
  'announces backwards': claiming(({ deliveries }) => ({ deliveries: deliveries.toReversed() })),
  'lists webhooks backwards': ({ webhooks }) => ({
    webhooks: { list: async () => (await webhooks.list()).toReversed() },
  }),
  'allows private addresses': ({ webhooks }) => ({
    webhooks: { add: (webhook, secret) => webhooks.add({ ...webhook, allowsPrivate: true }, secret) },
  }),
  'leases for no time': ({ outbox }) => ({
    outbox: { claim: limits => outbox.claim({ ...limits, leaseMs: 0 }) },
  }),
  'leases for ever': ({ outbox }) => ({
    outbox: { claim: limits => outbox.claim({ ...limits, leaseMs: 3_600_000 }) },
  }),
  'never returns a lease': () => ({ outbox: { settle: async () => {} } }),
  'settles for a lease that is over': ({ outbox }) => {
    let last: Claim | undefined
    return {
      outbox: {
        async claim(limits) {
          const claim = await outbox.claim(limits)
          last = claim ?? last
          return claim
        },
        settle: (claim, outcome) => outbox.settle({ ...claim, lease: last?.lease ?? '' }, outcome),
      },
    }
  },
  'names all leases alike': claiming(() => ({ lease: 'lease' })),
  'forgets what failed': ({ outbox }) => ({
    outbox: {
      settle: (claim, { delivered, failed }) =>
        outbox.settle(claim, { delivered: failed ? [...delivered, failed.id] : delivered }),
    },
  }),
  'counts no attempts': claiming(({ deliveries }) => ({
    deliveries: deliveries.map(each => ({ ...each, attempts: 0 })),
  })),
  'says that no webhook has failed': claiming(() => ({ failingForMs: 0 })),
  'counts the time of a failure in seconds': claiming(({ failingForMs }) => ({
    failingForMs: failingForMs / 1_000,
  })),
  'retries at once': ({ outbox }) => ({
    outbox: {
      settle: (claim, { delivered, failed }) =>
        outbox.settle(claim, { delivered, ...(failed && { failed: { ...failed, retryInMs: 0 } }) }),
    },
  }),
  'goes on with a failing webhook at once': ({ outbox }) => ({
    outbox: {
      settle: (claim, { delivered, failed }) =>
        outbox.settle(claim, { delivered, ...(failed && { failed: { ...failed, claimInMs: 0 } }) }),
    },
  }),
  'reads everything that is due': ({ outbox }) => ({
    outbox: { claim: limits => outbox.claim({ ...limits, rowsMax: 1_000, textBytesMax: 1_000_000 }) },
  }),
  'counts text in characters': ({ outbox }) => ({
    outbox: { claim: limits => outbox.claim({ ...limits, textBytesMax: limits.textBytesMax * 2 }) },
  }),
  'keeps one webhook': ({ webhooks }) => ({
    webhooks: {
      add: async (webhook, secret) => {
        if (webhook.id === a) await webhooks.add(webhook, secret)
      },
    },
  }),
  'retries nothing': () => ({ webhooks: { retry: async () => true } }),
  'removes nothing': () => ({ webhooks: { remove: async () => true } }),
  'knows every webhook': ({ webhooks }) => ({
    webhooks: { retry: async id => (await webhooks.retry(id)) || true },
  }),
  'signs with an old secret': () => ({ webhooks: { rotate: async () => true } }),
  'is never full': () => ({ outbox: { setFull: async () => {} } }),
  'counts nothing that was missed': ({ outbox }) => ({
    outbox: { figures: async () => (await outbox.figures()).map(each => ({ ...each, missed: 0 })) },
  }),
  'counts what was given up as waiting': ({ outbox }) => ({
    outbox: {
      figures: async () =>
        (await outbox.figures()).map(each => ({ ...each, waiting: each.waiting + each.givenUp })),
    },
  }),
  'logs without reasons': ({ outbox }) => ({
    outbox: {
      log: async (id, rowsMax) => (await outbox.log(id, rowsMax)).map(({ reason: _, ...each }) => each),
    },
  }),
  'logs what waits first': ({ outbox }) => ({
    outbox: { log: async (id, rowsMax) => (await outbox.log(id, rowsMax)).toReversed() },
  }),
}

describe('the contract catches an outbox that', () => {
  const caught = new Set<string>()
  test.each(Object.entries(broken))('%s', async (_, change) => {
    let isCaught = false
    for (const { name, run } of outboxContract) {
      const right = open()
      const { webhooks, outbox, add = right.add } = change(right)
      const store = {
        webhooks: { ...right.webhooks, ...webhooks },
        outbox: { ...right.outbox, ...outbox },
        add,
      }
      await run(store).catch(() => {
        isCaught = true
        caught.add(name)
      })
    }
    expect(isCaught).toBe(true)
  })

  test('with every one of its cases', () => {
    expect(outboxContract.map(({ name }) => name).filter(name => !caught.has(name))).toEqual([])
  })
})

import type { Plant } from '@plant-store/domain'
import { edgeIds, fullPlant, plant, texts } from '@plant-store/domain/testing'
import type { Storage } from '@plant-store/persistence'
import {
  type Claim,
  type ClaimOutcome,
  mintSecret,
  type Outbox,
  type WebhookId,
  type WebhookRepository,
} from '@plant-store/webhooks'
import { assert, expect } from 'vitest'

/** An outbox, its webhooks, and a way to add plants to the same store. */
interface AnnouncingStore {
  readonly webhooks: WebhookRepository
  readonly outbox: Outbox
  add(plant: Plant): Promise<unknown>
}

const hourMs = 3_600_000
const limits = { leaseMs: hourMs, rowsMax: 1_000, textBytesMax: 10_000_000 }
const idOf = (name: string) => name as WebhookId
const a = idOf('a')
const b = idOf('b')

export const addWebhook = (
  { webhooks }: Pick<AnnouncingStore, 'webhooks'>,
  name = 'webhook',
  secret = mintSecret(),
  n = 0,
) =>
  webhooks.add(
    {
      id: idOf(name),
      url: `https://${name}.example/`,
      allowsPrivate: n > 0,
      createdAt: new Date(n),
    },
    secret,
  )

async function addWebhooks(store: AnnouncingStore, ...ids: WebhookId[]): Promise<void> {
  for (const [n, id] of ids.entries()) {
    await addWebhook(store, id, mintSecret(), n)
  }
}

async function claimed(
  { outbox }: AnnouncingStore,
  ownLimits: Partial<typeof limits> = {},
): Promise<Claim> {
  const claim = await outbox.claim({ ...limits, ...ownLimits })
  assert.ok(claim, 'nothing can be claimed')
  return claim
}

/** Claims a webhook and settles with a failed attempt. */
async function fail(
  store: AnnouncingStore,
  failed: Omit<NonNullable<ClaimOutcome['failed']>, 'id' | 'reason'>,
  reason = 'it answered 500',
): Promise<Claim> {
  const claim = await claimed(store)
  const failedAttempt = { id: firstIdOf(claim), reason, ...failed }
  await store.outbox.settle(claim, { delivered: [], failed: failedAttempt })
  return claim
}

/** Returns the id of the first delivery. */
function firstIdOf({ deliveries: [first] }: Claim): bigint {
  assert.ok(first, 'a claim has a delivery')
  return first.id
}

async function deliver({ outbox }: AnnouncingStore, claim: Claim): Promise<void> {
  const delivered = claim.deliveries.map(({ id }) => id)
  await outbox.settle(claim, { delivered })
}

/** Adds plants with the ids from 0 on. */
async function addPlants(store: AnnouncingStore, count: number): Promise<void> {
  for (let id = 0; id < count; id++) {
    await store.add(plant(BigInt(id)))
  }
}

const plantsOf = ({ deliveries }: Claim) => deliveries.map(({ added }) => added.plant)
const idsOf = (claim: Claim): readonly bigint[] => plantsOf(claim).map(({ id }) => id)
const ascending = (x: bigint | string, y: typeof x) => (x < y ? -1 : 1)
const attemptsOf = ({ deliveries }: Claim) => deliveries.map(({ attempts }) => attempts)

const promises: Record<string, (store: AnnouncingStore) => Promise<void>> = {
  'keeps webhooks as they were added, in that order': async store => {
    expect(await store.webhooks.list()).toEqual([])
    await addWebhooks(store, b, a)
    const url = 'https://b.example/'
    expect(await store.webhooks.list()).toMatchObject([
      {
        id: b,
        createdAt: new Date(0),
        url,
        allowsPrivate: false,
        state: 'active',
        failures: 0,
      },
      { id: a, createdAt: new Date(1), allowsPrivate: true },
    ])
  },
  'announces every plant added from then on, exactly and in order': async store => {
    await store.add(plant(1_000n))
    expect(await store.outbox.claim(limits)).toBeUndefined()
    await addWebhooks(store, a)
    expect(await store.outbox.claim(limits)).toBeUndefined()
    const plants = edgeIds.toReversed().map((id, n) => {
      const text = texts[n % texts.length] ?? ''
      return n % 3 === 0 ? plant(id, text) : fullPlant(id, text)
    })
    for (const added of plants) {
      await store.add(added)
    }
    const claim = await claimed(store)
    expect(claim.webhook.id).toBe(a)
    expect(plantsOf(claim)).toStrictEqual(plants)
    const versions = claim.deliveries.map(({ added }) => added.version)
    expect(new Set(versions).size).toBe(plants.length)
    const ids = claim.deliveries.map(({ id }) => id)
    expect(ids).toEqual([...new Set(ids)].sort(ascending))
    expect(new Set(attemptsOf(claim))).toEqual(new Set([0]))
  },
  'announces one event to each webhook, and none holds up another': async store => {
    await addWebhooks(store, a, b)
    await store.add(plant(1n))
    const one = await fail(store, { retryInMs: hourMs, claimInMs: hourMs })
    const other = await claimed(store)
    const webhookIds = [one.webhook.id, other.webhook.id]
    expect(webhookIds.sort()).toEqual([a, b])
    expect(other.deliveries[0]?.added).toEqual(one.deliveries[0]?.added)
    expect(await store.outbox.claim(limits)).toBeUndefined()
  },
  'leases a webhook to one caller until it settles': async store => {
    await addWebhooks(store, a)
    await addPlants(store, 4)
    const racing = Array.from({ length: 20 }, () => store.outbox.claim(limits))
    const claims = await Promise.all(racing)
    const [claim, ...furtherClaims] = claims.filter(result => result !== undefined)
    assert.ok(claim, 'one caller leases the webhook')
    expect(furtherClaims).toEqual([])
    const evenOnes = claim.deliveries.filter((_, n) => n % 2 === 0)
    await store.outbox.settle(claim, { delivered: evenOnes.map(({ id }) => id) })
    const next = await claimed(store)
    expect(idsOf(next)).toEqual([1n, 3n])
    await deliver(store, next)
    expect(await store.outbox.claim(limits)).toBeUndefined()
    await store.add(plant(4n))
    expect(idsOf(await claimed(store))).toEqual([4n])
  },
  'leases an expired webhook anew, and settles nothing for the old lease':
    async store => {
      await addWebhooks(store, a)
      await store.add(plant(1n))
      const late = await claimed(store, { leaseMs: 0 })
      const claim = await claimed(store)
      expect(late.lease).not.toBe(claim.lease)
      const id = firstIdOf(late)
      const failed = { id, reason: 'late', retryInMs: hourMs, claimInMs: hourMs }
      await store.outbox.settle(late, { delivered: [], failed })
      await store.outbox.settle(late, { delivered: [id] })
      expect(await store.outbox.claim(limits)).toBeUndefined()
      await store.outbox.settle(claim, { delivered: [] })
      expect((await claimed(store)).deliveries).toEqual(claim.deliveries)
    },
  'claims the webhook that was leased the longest time ago': async store => {
    await addWebhooks(store, a, b)
    await store.add(plant(1n))
    const seen: WebhookId[] = []
    for (let n = 0; n < 6; n++) {
      const claim = await claimed(store)
      seen.push(claim.webhook.id)
      // No two leases may begin in the same millisecond, to which PostgreSQL rounds.
      const leasedAt = Date.now()
      while (Date.now() < leasedAt + 2) {
        await new Promise(setImmediate)
      }
      await store.outbox.settle(claim, { delivered: [] })
    }
    expect(seen).toEqual([a, b, a, b, a, b])
  },
  'reads no more deliveries and text than the limits': async store => {
    await addWebhooks(store, a)
    await store.add(plant(0n, ''))
    await store.add(plant(1n, 'é'))
    await store.add(plant(2n, '日'))
    await store.add(plant(3n, 'ab'))
    await store.add(plant(4n, 'c'))
    const twoRows = await claimed(store, { leaseMs: 0, rowsMax: 2 })
    expect(idsOf(twoRows)).toEqual([0n, 1n])
    const counts: number[] = []
    for (const textBytesMax of [1, 2, 3, 5, 6, 8, 9]) {
      const claim = await claimed(store, { leaseMs: 0, textBytesMax })
      counts.push(claim.deliveries.length)
    }
    expect(counts).toEqual([2, 2, 3, 3, 4, 5, 5])
  },
  'retries a failed attempt when it is due, and goes on with others': async store => {
    await addWebhooks(store, a)
    await addPlants(store, 3)
    const working = await store.webhooks.list()
    await fail(store, { retryInMs: hourMs, claimInMs: 0 })
    const [failing] = await store.webhooks.list()
    expect(failing).toMatchObject({ failures: 1, failingSince: expect.any(Date) })
    const second = await fail(store, { retryInMs: 0, claimInMs: 0 })
    expect(idsOf(second)).toEqual([1n, 2n])
    const failingTwice = { ...failing, failures: 2 }
    expect(await store.webhooks.list()).toEqual([failingTwice])
    const claim = await claimed(store)
    expect(idsOf(claim)).toEqual([1n, 2n])
    expect(attemptsOf(claim)).toEqual([1, 0])
    await deliver(store, claim)
    expect(await store.webhooks.list()).toEqual(working)
  },
  'says for how long a webhook has failed': async store => {
    await addWebhooks(store, a)
    await store.add(plant(1n))
    const begun = performance.now()
    const first = await fail(store, { retryInMs: 0, claimInMs: 0 })
    const failed = performance.now()
    expect(first.failingForMs).toBe(0)
    while (performance.now() < failed + 5) {
      await new Promise(setImmediate)
    }
    const { failingForMs } = await fail(store, { retryInMs: 0, claimInMs: 0 })
    // Both ends are rounded to milliseconds.
    expect(failingForMs).toBeGreaterThanOrEqual(4)
    expect(failingForMs).toBeLessThanOrEqual(performance.now() - begun + 1)
    expect((await claimed(store)).failingForMs).toBeGreaterThanOrEqual(failingForMs)
  },
  'leaves a failing webhook alone for as long as it was told': async store => {
    await addWebhooks(store, a)
    await store.add(plant(1n))
    await store.add(plant(2n))
    const { webhook } = await fail(store, { retryInMs: 0, claimInMs: hourMs })
    expect(await store.outbox.claim(limits)).toBeUndefined()
    expect(await store.webhooks.retry(webhook.id)).toBe(true)
    const claim = await claimed(store)
    expect(attemptsOf(claim)).toEqual([0, 0])
    expect(claim.webhook.failures).toBe(0)
  },
  'keeps what was given up, and retries it when told': async store => {
    await addWebhooks(store, a, b)
    await addPlants(store, 3)
    const ofA = await claimed(store)
    const ofB = await claimed(store)
    expect(ofA.webhook.id).toBe(a)
    expect(ofB.webhook.id).toBe(b)
    await store.outbox.settle(ofA, { delivered: [] })
    await fail(store, { claimInMs: 0 }, 'it answered 404')
    await fail(store, { retryInMs: hourMs, claimInMs: 0 }, 'it hangs')
    const deliveries = await store.outbox.deliveriesOf(a, 10)
    expect(deliveries).toMatchObject([
      { added: { plant: { id: 0n } }, reason: 'it answered 404' },
      { added: { plant: { id: 1n } }, reason: 'it hangs' },
      { added: { plant: { id: 2n } } },
    ])
    expect(deliveries[2]?.reason).toBeUndefined()
    const waitMs = deliveries.map(
      ({ nextAttemptAt, added }) =>
        nextAttemptAt && Number(nextAttemptAt) - Number(added.addedAt),
    )
    expect(waitMs[0]).toBeUndefined()
    expect(waitMs[1]).toBeGreaterThanOrEqual(hourMs)
    expect(waitMs[2]).toBeLessThan(hourMs)
    expect(await store.outbox.deliveriesOf(a, 2)).toHaveLength(2)
    const allFigures = await store.outbox.figures()
    const figures = allFigures.find(({ webhook }) => webhook === a)
    expect(figures).toMatchObject({ waiting: 2, givenUp: 1 })
    expect(figures?.oldestMs).toBeGreaterThanOrEqual(0)
    expect(idsOf(await claimed(store, { leaseMs: 0 }))).toEqual([2n])
    expect(await store.webhooks.retry(a)).toBe(true)
    expect(idsOf(await claimed(store))).toEqual([0n, 1n, 2n])
  },
  'stops a failing webhook, and starts it again with a retry': async store => {
    await addWebhooks(store, a)
    await store.add(plant(1n))
    const working = await store.webhooks.list()
    await fail(store, { retryInMs: 0 })
    const [stopped] = await store.webhooks.list()
    expect(stopped).toMatchObject({ state: 'stopped', failures: 1 })
    expect(await store.outbox.claim(limits)).toBeUndefined()
    expect(await store.webhooks.retry(a)).toBe(true)
    expect(await store.webhooks.list()).toEqual(working)
    expect(idsOf(await claimed(store))).toEqual([1n])
  },
  'announces nothing to a stopped one': async store => {
    await addWebhooks(store, a, b)
    await store.add(plant(1n))
    await store.outbox.stop(a)
    await store.add(plant(2n))
    await store.add(plant(3n))
    const ofB = await claimed(store)
    expect(ofB.webhook.id).toBe(b)
    expect(idsOf(ofB)).toEqual([1n, 2n, 3n])
    expect(await store.outbox.claim(limits)).toBeUndefined()
    await store.outbox.stop(b)
    await store.add(plant(5n))
    await store.webhooks.retry(a)
    await store.add(plant(6n))
    const figures = await store.outbox.figures()
    const byWebhook = figures.toSorted((x, y) => ascending(x.webhook, y.webhook))
    expect(byWebhook).toMatchObject([
      { webhook: a, state: 'active', waiting: 2 },
      { webhook: b, state: 'stopped', waiting: 3 },
    ])
    expect(idsOf(await claimed(store))).toEqual([1n, 6n])
  },
  'signs with the newest secret': async store => {
    const first = mintSecret()
    const second = mintSecret()
    await addWebhook(store, a, first)
    await store.add(plant(1n))
    expect((await claimed(store, { leaseMs: 0 })).secret).toBe(first)
    expect(await store.webhooks.rotate(a, second)).toBe(true)
    expect((await claimed(store, { leaseMs: 0 })).secret).toBe(second)
  },
  'forgets a removed webhook with its deliveries, and no others': async store => {
    await addWebhooks(store, a, b)
    await addPlants(store, 3)
    const claim = await claimed(store)
    expect(await store.webhooks.remove(claim.webhook.id)).toBe(true)
    const keptId = claim.webhook.id === a ? b : a
    const figures = await store.outbox.figures()
    expect(await store.webhooks.list()).toMatchObject([{ id: keptId }])
    expect(figures).toMatchObject([{ webhook: keptId, waiting: 3 }])
    expect(await store.outbox.deliveriesOf(claim.webhook.id, 10)).toEqual([])
    await deliver(store, claim)
    await store.add(plant(3n))
    expect(idsOf(await claimed(store))).toEqual([0n, 1n, 2n, 3n])
  },
  'knows no webhook that was never added': async ({ webhooks, outbox }) => {
    const changes = [
      webhooks.remove(a),
      webhooks.retry(a),
      webhooks.rotate(a, mintSecret()),
    ]
    expect(await Promise.all(changes)).toEqual([false, false, false])
    await outbox.stop(a)
    expect(await outbox.figures()).toEqual([])
    expect(await outbox.deliveriesOf(a, 10)).toEqual([])
  },
}

/**
 * The promises of both ports. `run` takes an empty store and rejects if it breaks the
 * promise.
 */
export const outboxContract = Object.entries(promises).map(([name, run]) => ({
  name,
  run: (webhooks: Storage['webhooks'], { plants }: Storage) =>
    run({ webhooks, outbox: webhooks.outbox, add: plants.insert }),
}))

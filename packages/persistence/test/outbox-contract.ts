import assert from 'node:assert/strict'
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

async function addWebhooks({ webhooks }: AnnouncingStore, ...ids: WebhookId[]): Promise<void> {
  for (const [n, id] of ids.entries()) {
    const webhook = { id, url: `https://${id}.example/`, allowsPrivate: n > 0, createdAt: new Date(n) }
    await webhooks.add(webhook, mintSecret())
  }
}

async function claimed({ outbox }: AnnouncingStore, given: Partial<typeof limits> = {}): Promise<Claim> {
  const claim = await outbox.claim({ ...limits, ...given })
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
  const id = claim.deliveries[0]?.id as bigint
  await store.outbox.settle(claim, { delivered: [], failed: { id, reason, ...failed } })
  return claim
}

const plantsOf = ({ deliveries }: Claim) => deliveries.map(({ added }) => added.plant)
const idsOf = (claim: Claim) => plantsOf(claim).map(({ id }) => id as bigint)

export const addWebhook = ({ webhooks }: Pick<Storage, 'webhooks'>, name = 'webhook') =>
  webhooks.add(
    { id: name as WebhookId, url: 'https://a.example/', allowsPrivate: false, createdAt: new Date(0) },
    mintSecret(),
  )

const promises: Record<string, (store: AnnouncingStore) => Promise<void>> = {
  'keeps webhooks as they were added, in that order': async store => {
    assert.deepEqual(await store.webhooks.list(), [])
    await addWebhooks(store, b, a)
    const [first, second] = await store.webhooks.list()
    const expected = { url: 'https://b.example/', allowsPrivate: false, state: 'active', failures: 0 }
    assert.deepEqual(first, { ...first, id: b, createdAt: new Date(0), ...expected })
    assert.deepEqual([second?.id, second?.allowsPrivate, second?.createdAt], [a, true, new Date(1)])
  },
  'announces every plant that is added from then on, exactly, and in that order': async store => {
    await store.add(plant(1_000n))
    assert.equal(await store.outbox.claim(limits), undefined)
    await addWebhooks(store, a)
    assert.equal(await store.outbox.claim(limits), undefined)
    const plants = edgeIds.toReversed().map((id, n) => {
      const text = texts[n % texts.length] as string
      return n % 3 === 0 ? plant(id, text) : fullPlant(id, text)
    })
    for (const each of plants) await store.add(each)
    const claim = await claimed(store)
    assert.equal(claim.webhook.id, a)
    assert.deepEqual(plantsOf(claim), plants)
    assert.equal(new Set(claim.deliveries.map(({ added }) => added.version)).size, plants.length)
    const ids = claim.deliveries.map(({ id }) => id)
    assert.deepEqual(
      ids,
      [...new Set(ids)].sort((x, y) => (x < y ? -1 : 1)),
    )
    assert.ok(claim.deliveries.every(({ attempts }) => attempts === 0))
  },
  'announces the same event to each webhook, and the order of one is not held up by another': async store => {
    await addWebhooks(store, a, b)
    await store.add(plant(1n))
    const one = await fail(store, { retryInMs: hourMs, claimInMs: hourMs })
    const other = await claimed(store)
    assert.deepEqual([one.webhook.id, other.webhook.id].sort(), [a, b])
    assert.deepEqual(other.deliveries[0]?.added, one.deliveries[0]?.added)
    assert.equal(await store.outbox.claim(limits), undefined)
  },
  'leases a webhook to one caller until it settles': async store => {
    await addWebhooks(store, a)
    for (let n = 0n; n < 4n; n++) await store.add(plant(n))
    const claims = await Promise.all(Array.from({ length: 20 }, () => store.outbox.claim(limits)))
    const [claim, ...others] = claims.filter(each => each !== undefined)
    assert.ok(claim)
    assert.equal(others.length, 0, 'several callers have it')
    const delivered = [0, 2].map(n => claim.deliveries[n]?.id as bigint)
    await store.outbox.settle(claim, { delivered })
    const next = await claimed(store)
    assert.deepEqual(idsOf(next), [1n, 3n])
    await store.outbox.settle(next, { delivered: next.deliveries.map(({ id }) => id) })
    assert.equal(await store.outbox.claim(limits), undefined)
    await store.add(plant(4n))
    assert.deepEqual(idsOf(await claimed(store)), [4n])
  },
  'leases an expired webhook to the next caller, and settles nothing for the previous one': async store => {
    await addWebhooks(store, a)
    await store.add(plant(1n))
    const late = await claimed(store, { leaseMs: 0 })
    const claim = await claimed(store)
    assert.notEqual(late.lease, claim.lease)
    const id = late.deliveries[0]?.id as bigint
    const failed = { id, reason: 'late', retryInMs: hourMs, claimInMs: hourMs }
    await store.outbox.settle(late, { delivered: [], failed })
    await store.outbox.settle(late, { delivered: [id] })
    assert.equal(await store.outbox.claim(limits), undefined)
    await store.outbox.settle(claim, { delivered: [] })
    assert.deepEqual((await claimed(store)).deliveries, claim.deliveries)
  },
  'claims the webhook that was leased the longest time ago': async store => {
    await addWebhooks(store, a, b)
    await store.add(plant(1n))
    const seen: WebhookId[] = []
    for (let n = 0; n < 6; n++) {
      const claim = await claimed(store)
      seen.push(claim.webhook.id)
      // No two leases may begin in the same millisecond.
      const leasedAt = Date.now()
      while (Date.now() === leasedAt) await new Promise(setImmediate)
      await store.outbox.settle(claim, { delivered: [] })
    }
    assert.deepEqual(seen, [a, b, a, b, a, b])
  },
  'reads no more deliveries and text than the limits': async store => {
    await addWebhooks(store, a)
    for (const [id, name] of ['', 'é', '日', 'ab', 'c'].entries()) await store.add(plant(BigInt(id), name))
    const lease = { leaseMs: 0 }
    assert.deepEqual(idsOf(await claimed(store, { ...lease, rowsMax: 2 })), [0n, 1n])
    for (const [textBytesMax, count] of [
      [1, 2],
      [2, 2],
      [3, 3],
      [5, 3],
      [6, 4],
      [8, 5],
      [9, 5],
    ] as const)
      assert.equal((await claimed(store, { ...lease, textBytesMax })).deliveries.length, count)
  },
  'retries an attempt that failed when it is due, and goes on with the others': async store => {
    await addWebhooks(store, a)
    for (let n = 0n; n < 3n; n++) await store.add(plant(n))
    await fail(store, { retryInMs: hourMs, claimInMs: 0 })
    const failing = (await store.webhooks.list())[0]
    assert.equal(failing?.failures, 1)
    assert.deepEqual(idsOf(await fail(store, { retryInMs: 0, claimInMs: 0 })), [1n, 2n])
    assert.deepEqual((await store.webhooks.list())[0], { ...failing, failures: 2 })
    const claim = await claimed(store)
    assert.deepEqual(idsOf(claim), [1n, 2n])
    assert.deepEqual(
      claim.deliveries.map(({ attempts }) => attempts),
      [1, 0],
    )
    await store.outbox.settle(claim, { delivered: claim.deliveries.map(({ id }) => id) })
    const [working] = await store.webhooks.list()
    assert.deepEqual([working?.failures, working?.failingSince], [0, undefined])
    assert.ok(failing.failingSince)
  },
  'says for how long a webhook has failed': async store => {
    await addWebhooks(store, a)
    await store.add(plant(1n))
    const begun = performance.now()
    const first = await fail(store, { retryInMs: 0, claimInMs: 0 })
    const failed = performance.now()
    assert.equal(first.failingForMs, 0)
    while (performance.now() < failed + 5) await new Promise(setImmediate)
    const { failingForMs } = await fail(store, { retryInMs: 0, claimInMs: 0 })
    // Both ends are rounded to milliseconds.
    assert.ok(failingForMs >= 4 && failingForMs <= performance.now() - begun + 1, `${failingForMs}`)
    assert.ok((await claimed(store)).failingForMs >= failingForMs)
  },
  'leaves a failing webhook alone for as long as it was told': async store => {
    await addWebhooks(store, a)
    await store.add(plant(1n))
    await store.add(plant(2n))
    const { webhook } = await fail(store, { retryInMs: 0, claimInMs: hourMs })
    assert.equal(await store.outbox.claim(limits), undefined)
    assert.equal(await store.webhooks.retry(webhook.id), true)
    const claim = await claimed(store)
    assert.deepEqual(
      claim.deliveries.map(({ attempts }) => attempts),
      [0, 0],
    )
    assert.equal(claim.webhook.failures, 0)
  },
  'keeps what was given up, and retries it when told': async store => {
    await addWebhooks(store, a, b)
    for (let n = 0n; n < 3n; n++) await store.add(plant(n))
    const ofA = await claimed(store)
    const ofB = await claimed(store)
    assert.deepEqual([ofA.webhook.id, ofB.webhook.id], [a, b])
    await store.outbox.settle(ofA, { delivered: [] })
    await fail(store, { claimInMs: 0 }, 'it answered 404')
    await fail(store, { retryInMs: hourMs, claimInMs: 0 }, 'it hangs')
    const deliveries = await store.outbox.deliveriesOf(a, 10)
    assert.deepEqual(
      deliveries.map(({ added }) => added.plant.id as bigint),
      [0n, 1n, 2n],
    )
    assert.deepEqual(
      deliveries.map(({ reason }) => reason),
      ['it answered 404', 'it hangs', undefined],
    )
    const waitMs = deliveries.map(
      ({ nextAttemptAt, added }) => nextAttemptAt && Number(nextAttemptAt) - Number(added.addedAt),
    )
    assert.equal(waitMs[0], undefined)
    assert.ok((waitMs[1] ?? 0) >= hourMs && (waitMs[2] ?? hourMs) < hourMs)
    assert.deepEqual((await store.outbox.deliveriesOf(a, 2)).length, 2)
    const figures = (await store.outbox.figures()).find(({ webhook }) => webhook === a)
    assert.deepEqual([figures?.waiting, figures?.givenUp, figures?.missed], [2, 1, 0])
    assert.ok((figures?.oldestMs ?? -1) >= 0)
    assert.deepEqual(idsOf(await claimed(store, { leaseMs: 0 })), [2n])
    assert.equal(await store.webhooks.retry(a), true)
    assert.deepEqual(idsOf(await claimed(store)), [0n, 1n, 2n])
  },
  'stops a failing webhook, and starts it again with a retry': async store => {
    await addWebhooks(store, a)
    await store.add(plant(1n))
    await fail(store, { retryInMs: 0 })
    assert.deepEqual(
      (await store.webhooks.list()).map(({ state, failures }) => [state, failures]),
      [['stopped', 1]],
    )
    assert.equal(await store.outbox.claim(limits), undefined)
    assert.equal(await store.webhooks.retry(a), true)
    const [retried] = await store.webhooks.list()
    assert.deepEqual([retried?.state, retried?.failures, retried?.failingSince], ['active', 0, undefined])
    assert.deepEqual(idsOf(await claimed(store)), [1n])
  },
  'announces nothing to a stopped one, and counts what it missed': async store => {
    await addWebhooks(store, a, b)
    await store.add(plant(1n))
    await store.outbox.stop(a)
    for (let n = 2n; n < 5n; n++) await store.add(plant(n))
    const ofB = await claimed(store)
    assert.deepEqual([ofB.webhook.id, idsOf(ofB)], [b, [1n, 2n, 3n, 4n]])
    assert.equal(await store.outbox.claim(limits), undefined)
    await store.outbox.stop(b)
    await store.add(plant(5n))
    await store.webhooks.retry(a)
    await store.add(plant(6n))
    const figures = (await store.outbox.figures()).map(({ webhook, state, waiting, missed }) => [
      webhook,
      state,
      waiting,
      missed,
    ])
    assert.deepEqual(figures.sort(), [
      [a, 'active', 2, 4],
      [b, 'stopped', 4, 2],
    ])
    assert.deepEqual(idsOf(await claimed(store)), [1n, 6n])
  },
  'signs with the newest secret': async store => {
    const [first, second] = [mintSecret(), mintSecret()]
    await store.webhooks.add(
      { id: a, url: 'https://a.example/', allowsPrivate: false, createdAt: new Date() },
      first,
    )
    await store.add(plant(1n))
    assert.equal((await claimed(store, { leaseMs: 0 })).secret, first)
    assert.equal(await store.webhooks.rotate(a, second), true)
    assert.equal((await claimed(store, { leaseMs: 0 })).secret, second)
  },
  'forgets a removed webhook with all that waits for it, and nothing of others': async store => {
    await addWebhooks(store, a, b)
    for (let n = 0n; n < 3n; n++) await store.add(plant(n))
    const claim = await claimed(store)
    assert.equal(await store.webhooks.remove(claim.webhook.id), true)
    const left = claim.webhook.id === a ? b : a
    assert.deepEqual(
      (await store.webhooks.list()).map(({ id }) => id),
      [left],
    )
    assert.deepEqual(
      (await store.outbox.figures()).map(({ webhook, waiting }) => [webhook, waiting]),
      [[left, 3]],
    )
    assert.deepEqual(await store.outbox.deliveriesOf(claim.webhook.id, 10), [])
    await store.outbox.settle(claim, { delivered: claim.deliveries.map(({ id }) => id) })
    await store.add(plant(3n))
    assert.deepEqual(idsOf(await claimed(store)), [0n, 1n, 2n, 3n])
  },
  'knows no webhook that was never added': async ({ webhooks, outbox }) => {
    const changes = [webhooks.remove(a), webhooks.retry(a), webhooks.rotate(a, mintSecret())]
    assert.deepEqual(await Promise.all(changes), [false, false, false])
    await outbox.stop(a)
    assert.deepEqual(await outbox.figures(), [])
    assert.deepEqual(await outbox.deliveriesOf(a, 10), [])
  },
}

/** The promises of both ports. `run` takes an empty store and rejects if it breaks the promise. */
export const outboxContract = Object.entries(promises).map(([name, run]) => ({
  name,
  run: (webhooks: Storage['webhooks'], { plants }: Storage) =>
    run({ webhooks, outbox: webhooks.outbox, add: plants.insert }),
}))

import assert from 'node:assert/strict'
import type { Plant, PlantRepository } from '@plant-store/domain'
import { edgeIds, fullPlant, plant, texts } from '@plant-store/domain/testing'
import type { Claim, ClaimOutcome, Outbox, WebhookRepository } from '../ports.ts'
import { mintSecret } from '../signature.ts'
import type { WebhookEvent, WebhookId } from '../webhook.ts'

/** Plants, and webhooks to which their changes are announced. */
export interface AnnouncingStore {
  readonly plants: PlantRepository & { readonly unannounced: PlantRepository }
  readonly webhooks: WebhookRepository & { readonly outbox: Outbox }
}

/**
 * One promise of both ports. `run` takes an empty store and rejects if it breaks the
 * promise.
 */
export interface OutboxCase {
  readonly name: string
  run(store: AnnouncingStore): Promise<void>
}

const hourMs = 3_600_000
const limits = { leaseMs: hourMs, rowsMax: 1_000, textBytesMax: 10_000_000 }
const a = 'a' as WebhookId
const b = 'b' as WebhookId
const all: readonly WebhookEvent[] = ['added', 'changed', 'removed']

interface Added {
  readonly events?: readonly WebhookEvent[]
  readonly secret?: ReturnType<typeof mintSecret>
  readonly n?: number
}

function addWebhook({ webhooks }: AnnouncingStore, id: WebhookId, added: Added = {}) {
  const { events = ['added'], secret = mintSecret(), n = 0 } = added
  const url = `https://${id}.example/`
  const createdAt = new Date(n)
  return webhooks.add({ id, url, allowsPrivate: n > 0, events, createdAt }, secret)
}

async function addWebhooks(store: AnnouncingStore, ...ids: WebhookId[]): Promise<void> {
  for (const [n, id] of ids.entries()) {
    await addWebhook(store, id, { n })
  }
}

async function claimed(
  { webhooks }: AnnouncingStore,
  ownLimits: Partial<typeof limits> = {},
): Promise<Claim> {
  const claim = await webhooks.outbox.claim({ ...limits, ...ownLimits })
  assert(claim, 'something can be claimed')
  return claim
}

async function assertNothingDue({ webhooks }: AnnouncingStore): Promise<void> {
  assert.equal(await webhooks.outbox.claim(limits), undefined, 'nothing is due')
}

/** Claims a webhook and settles with a failed attempt of its first delivery. */
async function fail(
  store: AnnouncingStore,
  failed: Omit<NonNullable<ClaimOutcome['failed']>, 'id' | 'reason'>,
  reason = 'it answered 500',
): Promise<Claim> {
  const claim = await claimed(store)
  const failedAttempt = { id: firstIdOf(claim), reason, ...failed }
  await store.webhooks.outbox.settle(claim, { delivered: [], failed: failedAttempt })
  return claim
}

/** Returns the id of the first delivery. */
function firstIdOf({ deliveries: [first] }: Claim): bigint {
  assert(first, 'a claim has a delivery')
  return first.id
}

async function deliver({ webhooks }: AnnouncingStore, claim: Claim): Promise<void> {
  const delivered = claim.deliveries.map(({ id }) => id)
  await webhooks.outbox.settle(claim, { delivered })
}

/** Inserts plants with the ids from 0 on. */
async function insertPlants({ plants }: AnnouncingStore, count: number): Promise<void> {
  for (let id = 0; id < count; id++) {
    await plants.insert(plant(BigInt(id)))
  }
}

/** Returns what waits for a webhook, in order. */
async function announcedTo(store: AnnouncingStore, id: WebhookId): Promise<string[]> {
  const deliveries = await store.webhooks.outbox.deliveriesOf(id, 1_000)
  return deliveries.map(each => `${each.event} ${each.plant.id} ${each.plant.name}`)
}

const plantsOf = ({ deliveries }: Claim) => deliveries.map(each => each.plant)
const idsOf = (claim: Claim): readonly bigint[] => plantsOf(claim).map(({ id }) => id)
const attemptsOf = ({ deliveries }: Claim) => deliveries.map(({ attempts }) => attempts)
const idOf = (id: bigint): Plant['id'] => plant(id).id

/** Waits until the clock of a store, which counts milliseconds, has moved on. */
async function nextMilliseconds(count: number): Promise<void> {
  const start = performance.now()
  while (performance.now() < start + count) {
    await new Promise(resolve => setImmediate(resolve))
  }
}

const announcements: Record<string, OutboxCase['run']> = {
  'announces every plant added from then on, exactly and in order': async store => {
    await store.plants.insert(plant(1_000n))
    await assertNothingDue(store)
    await addWebhooks(store, a)
    await assertNothingDue(store)
    const plants = edgeIds.toReversed().map((id, n) => {
      const text = texts[n % texts.length] ?? ''
      return n % 3 === 0 ? plant(id, text) : fullPlant(id, text)
    })
    for (const added of plants) {
      await store.plants.insert(added)
    }

    const claim = await claimed(store)
    assert.equal(claim.webhook.id, a)
    assert.deepEqual(plantsOf(claim), plants)
    const ids = claim.deliveries.map(({ id }) => id)
    assert.deepEqual(ids, [...new Set(ids)].sort(ascending))
    assert.deepEqual([...new Set(attemptsOf(claim))], [0])
  },
  'announces each way to add a plant, and nothing that failed': async store => {
    const { plants } = store
    await addWebhooks(store, a)
    await plants.insert(plant(1n, 'insert'))
    await plants.insert(plant(1n, 'taken'))
    await plants.insertAll([plant(2n, 'insertAll'), plant(1n), plant(2n, 'taken')])
    await plants.save(plant(3n, 'save'))
    await plants.saveAll([plant(4n, 'saveAll'), plant(1n, 'replaced'), plant(4n)])
    await plants.saveIf(plant(5n, 'saveIf'), undefined)
    await plants.saveIf(plant(5n, 'taken'), undefined)

    assert.deepEqual(await announcedTo(store, a), [
      'added 1 insert',
      'added 2 insertAll',
      'added 3 save',
      'added 4 saveAll',
      'added 5 saveIf',
    ])
  },
  'announces each change and removal with the plant as it was then': async store => {
    const { plants } = store
    await addWebhook(store, a, { events: all })
    const { version: first } = await plants.save(plant(1n, 'a'))
    const { version: second } = await plants.save(plant(1n, 'a'))
    await plants.saveIf(fullPlant(1n, 'b'), first)
    const third = await plants.saveIf(fullPlant(1n, 'b'), second)
    assert(third)
    await plants.removeIf(idOf(1n), second)
    await plants.removeIf(idOf(1n), third)
    await plants.remove(idOf(1n))
    await plants.saveAll([plant(2n, 'c'), plant(2n, 'd')])
    await plants.remove(idOf(2n))

    const { deliveries } = await claimed(store)
    const told = deliveries.map(each => [each.event, each.plant])
    assert.deepEqual(told, [
      ['added', plant(1n, 'a')],
      ['changed', plant(1n, 'a')],
      ['changed', fullPlant(1n, 'b')],
      ['removed', fullPlant(1n, 'b')],
      ['added', plant(2n, 'c')],
      ['changed', plant(2n, 'd')],
      ['removed', plant(2n, 'd')],
    ])
    const versions = deliveries.map(({ version }) => version)
    assert.deepEqual(versions.slice(0, 4), [first, second, third, third])
    assert.equal(versions[6], versions[5], 'a removal has the version that it ended')
  },
  'announces to each webhook the events that it wants, from then on': async store => {
    const { plants, webhooks } = store
    const changeAll = async (id: bigint) => {
      await plants.insert(plant(id, 'a'))
      await plants.save(plant(id, 'b'))
      await plants.remove(idOf(id))
    }
    await addWebhook(store, a, { events: ['removed'] })
    await addWebhook(store, b, { events: ['added', 'changed'], n: 1 })
    await changeAll(1n)
    assert.equal(await webhooks.setEvents(a, ['changed']), true)
    await changeAll(2n)

    assert.deepEqual(await announcedTo(store, a), ['removed 1 b', 'changed 2 b'])
    assert.deepEqual(await announcedTo(store, b), [
      'added 1 a',
      'changed 1 b',
      'added 2 a',
      'changed 2 b',
    ])
    const listed = await webhooks.list()
    const events = listed.map(webhook => webhook.events)
    assert.deepEqual(events, [['changed'], ['added', 'changed']])
  },
  'announces nothing that is changed unannounced, and tells its outcome': async store => {
    const { unannounced } = store.plants
    await addWebhook(store, a, { events: all })

    assert.equal(await unannounced.insert(plant(1n)), 'inserted')
    const outcomes = await unannounced.insertAll([plant(2n), plant(1n)])
    assert.deepEqual(outcomes, ['inserted', 'id-taken'])
    assert.equal((await unannounced.save(plant(3n))).created, true)
    const saved = await unannounced.saveAll([plant(4n), plant(3n), plant(4n)])
    assert.deepEqual(
      saved.map(({ created }) => created),
      [true, false, false],
    )
    const version = await unannounced.saveIf(plant(5n), undefined)
    assert(version)
    assert(await unannounced.saveIf(plant(5n), version))
    assert.equal(await unannounced.removeIf(idOf(5n), version), false)
    assert.equal(await unannounced.remove(idOf(4n)), true)

    assert.deepEqual(await announcedTo(store, a), [])
    assert.equal((await unannounced.page({ limit: 10 })).length, 4)
  },
  'hides nothing that is announced at the same time': async store => {
    const { plants } = store
    const { unannounced } = plants
    await addWebhooks(store, a)
    await Promise.all([
      plants.insertAll([plant(1n), plant(2n)]),
      unannounced.insertAll([plant(3n), plant(4n)]),
      plants.insert(plant(5n)),
      unannounced.save(plant(6n)),
      plants.save(plant(7n)),
    ])

    const deliveries = await store.webhooks.outbox.deliveriesOf(a, 10)
    const ids = deliveries.map(each => each.plant.id)
    assert.deepEqual(ids.toSorted(ascending), [1n, 2n, 5n, 7n])
  },
  'announces racing changes of a plant in the order that they were made': async store => {
    const { plants } = store
    await addWebhook(store, a, { events: all })
    const rounds = Array.from({ length: 20 }, (_, n) => [
      plants.insert(plant(1n, `insert ${n}`)),
      plants.save(plant(1n, `save ${n}`)),
      plants.remove(idOf(1n)),
    ])
    await Promise.all(rounds.flat())
    const stored = await plants.find(idOf(1n))

    const { deliveries } = await claimed(store)
    let state: string | undefined
    for (const { event, version } of deliveries) {
      assert.equal(event === 'added', state === undefined, `${event} after ${state}`)
      state = event === 'removed' ? undefined : version
    }
    assert.equal(state, stored?.version)
  },
  'announces nothing to a stopped one': async store => {
    const { plants, webhooks } = store
    await addWebhooks(store, a, b)
    await plants.insert(plant(1n))
    await webhooks.outbox.stop(a)
    await plants.insertAll([plant(2n), plant(3n)])
    const ofB = await claimed(store)
    assert.equal(ofB.webhook.id, b)
    assert.deepEqual(idsOf(ofB), [1n, 2n, 3n])
    await assertNothingDue(store)

    await webhooks.outbox.stop(b)
    await plants.insert(plant(5n))
    await webhooks.retry(a)
    await plants.insert(plant(6n))
    const figures = await webhooks.outbox.figures()
    assert.partialDeepStrictEqual(
      figures.toSorted((x, y) => ascending(x.webhook, y.webhook)),
      [
        { webhook: a, state: 'active', waiting: 2 },
        { webhook: b, state: 'stopped', waiting: 3 },
      ],
    )
    assert.deepEqual(idsOf(await claimed(store)), [1n, 6n])
  },
}

const leases: Record<string, OutboxCase['run']> = {
  'leases a webhook to one caller until it settles': async store => {
    const { outbox } = store.webhooks
    await addWebhooks(store, a)
    await insertPlants(store, 4)
    const racing = Array.from({ length: 20 }, () => outbox.claim(limits))
    const claims = await Promise.all(racing)
    const [claim, ...others] = claims.filter(result => result !== undefined)
    assert(claim, 'one caller leases the webhook')
    assert.deepEqual(others, [])

    const evenOnes = claim.deliveries.filter((_, n) => n % 2 === 0)
    await outbox.settle(claim, { delivered: evenOnes.map(({ id }) => id) })
    const next = await claimed(store)
    assert.deepEqual(idsOf(next), [1n, 3n])
    await deliver(store, next)
    await assertNothingDue(store)
    await store.plants.insert(plant(4n))
    assert.deepEqual(idsOf(await claimed(store)), [4n])
  },
  'leases an expired webhook anew, and settles nothing for the old lease':
    async store => {
      const { outbox } = store.webhooks
      await addWebhooks(store, a)
      await store.plants.insert(plant(1n))
      const late = await claimed(store, { leaseMs: 0 })
      const claim = await claimed(store)
      assert.notEqual(late.lease, claim.lease)

      const id = firstIdOf(late)
      const failed = { id, reason: 'late', retryInMs: hourMs, claimInMs: hourMs }
      await outbox.settle(late, { delivered: [], failed })
      await outbox.settle(late, { delivered: [id] })
      await assertNothingDue(store)
      await outbox.settle(claim, { delivered: [] })
      assert.deepEqual((await claimed(store)).deliveries, claim.deliveries)
    },
  'claims the webhook that was leased the longest time ago': async store => {
    await addWebhooks(store, a, b)
    await store.plants.insert(plant(1n))
    const seen: WebhookId[] = []
    for (let n = 0; n < 6; n++) {
      const claim = await claimed(store)
      seen.push(claim.webhook.id)
      // No two leases may begin in the same millisecond, to which PostgreSQL rounds.
      await nextMilliseconds(2)
      await store.webhooks.outbox.settle(claim, { delivered: [] })
    }
    assert.deepEqual(seen, [a, b, a, b, a, b])
  },
  'reads no more deliveries and text than the limits': async store => {
    await addWebhooks(store, a)
    const names = ['', 'é', '日', 'ab', 'c']
    for (const [id, name] of names.entries()) {
      await store.plants.insert(plant(BigInt(id), name))
    }
    const twoRows = await claimed(store, { leaseMs: 0, rowsMax: 2 })
    assert.deepEqual(idsOf(twoRows), [0n, 1n])
    const counts: number[] = []
    for (const textBytesMax of [1, 2, 3, 5, 6, 8, 9]) {
      const claim = await claimed(store, { leaseMs: 0, textBytesMax })
      counts.push(claim.deliveries.length)
    }
    assert.deepEqual(counts, [2, 2, 3, 3, 4, 5, 5])
  },
}

const failures: Record<string, OutboxCase['run']> = {
  'retries a failed attempt when it is due, and goes on with other plants':
    async store => {
      const { webhooks } = store
      await addWebhooks(store, a)
      await insertPlants(store, 3)
      const working = await webhooks.list()
      await fail(store, { retryInMs: hourMs, claimInMs: 0 })
      const [failing] = await webhooks.list()
      assert.equal(failing?.failures, 1)
      assert(failing.failingSince)

      const second = await fail(store, { retryInMs: 0, claimInMs: 0 })
      assert.deepEqual(idsOf(second), [1n, 2n])
      assert.deepEqual(await webhooks.list(), [{ ...failing, failures: 2 }])
      const claim = await claimed(store)
      assert.deepEqual(idsOf(claim), [1n, 2n])
      assert.deepEqual(attemptsOf(claim), [1, 0])
      await deliver(store, claim)
      assert.deepEqual(await webhooks.list(), working)
    },
  'lets later deliveries of a plant wait for one that failed': async store => {
    const { plants } = store
    await addWebhook(store, a, { events: all })
    await plants.save(plant(1n, 'first'))
    await plants.save(plant(1n, 'second'))
    await plants.save(plant(2n))
    await fail(store, { retryInMs: hourMs, claimInMs: 0 })
    await plants.save(plant(1n, 'third'))

    const claim = await claimed(store)
    assert.deepEqual(idsOf(claim), [2n])
    await deliver(store, claim)
    await assertNothingDue(store)
    await plants.remove(idOf(1n))
    await assertNothingDue(store)
    assert.equal(await store.webhooks.retry(a), true)
    assert.deepEqual(idsOf(await claimed(store)), [1n, 1n, 1n, 1n])
  },
  'makes a plant wait for one webhook only, and delivers it in order': async store => {
    const { plants } = store
    await addWebhook(store, a, { events: all })
    await addWebhook(store, b, { events: all, n: 1 })
    await plants.save(plant(1n, 'first'))
    await plants.save(plant(1n, 'second'))
    const failed = await fail(store, { retryInMs: 0, claimInMs: 0 })
    const other = await claimed(store)

    assert.notEqual(other.webhook.id, failed.webhook.id)
    const names = [other, await claimed(store)].map(({ deliveries }) =>
      deliveries.map(each => `${each.plant.name}`),
    )
    assert.deepEqual(names, Array(2).fill(['first', 'second']))
  },
  'says for how long a webhook has failed': async store => {
    await addWebhooks(store, a)
    await store.plants.insert(plant(1n))
    const begun = performance.now()
    const first = await fail(store, { retryInMs: 0, claimInMs: 0 })
    assert.equal(first.failingForMs, 0)
    await nextMilliseconds(5)
    const { failingForMs } = await fail(store, { retryInMs: 0, claimInMs: 0 })

    // Both ends are rounded to milliseconds.
    assert(failingForMs >= 4, `${failingForMs}`)
    assert(failingForMs <= performance.now() - begun + 1, `${failingForMs}`)
    assert((await claimed(store)).failingForMs >= failingForMs)
  },
  'leaves a failing webhook alone for as long as it was told': async store => {
    await addWebhooks(store, a)
    await insertPlants(store, 2)
    await fail(store, { retryInMs: 0, claimInMs: hourMs })
    await assertNothingDue(store)

    assert.equal(await store.webhooks.retry(a), true)
    const claim = await claimed(store)
    assert.deepEqual(attemptsOf(claim), [0, 0])
    assert.equal(claim.webhook.failures, 0)
  },
  'keeps what was given up, and retries it when told': async store => {
    const { outbox } = store.webhooks
    await addWebhooks(store, a)
    await insertPlants(store, 3)
    await fail(store, { claimInMs: 0 }, 'it answered 404')
    await fail(store, { retryInMs: hourMs, claimInMs: 0 }, 'it hangs')
    const deliveries = await outbox.deliveriesOf(a, 10)
    const reasons = deliveries.map(each => [each.plant.id, each.reason])
    assert.deepEqual(reasons, [
      [0n, 'it answered 404'],
      [1n, 'it hangs'],
      [2n, undefined],
    ])
    const [givenUpMs, failedMs = 0, newMs = hourMs] = deliveries.map(
      ({ nextAttemptAt, addedAt }) => nextAttemptAt && Number(nextAttemptAt) - +addedAt,
    )
    assert.equal(givenUpMs, undefined)
    assert(failedMs >= hourMs, `${failedMs}`)
    assert(newMs < hourMs, `${newMs}`)
    assert.equal((await outbox.deliveriesOf(a, 2)).length, 2)

    const [figures] = await outbox.figures()
    assert.partialDeepStrictEqual(figures, { waiting: 2, givenUp: 1 })
    assert((figures?.oldestMs ?? -1) >= 0, `${figures?.oldestMs}`)
    assert.deepEqual(idsOf(await claimed(store, { leaseMs: 0 })), [2n])
    assert.equal(await store.webhooks.retry(a), true)
    assert.deepEqual(idsOf(await claimed(store)), [0n, 1n, 2n])
  },
  'stops a failing webhook, and starts it again with a retry': async store => {
    const { webhooks } = store
    await addWebhooks(store, a)
    await store.plants.insert(plant(1n))
    const working = await webhooks.list()
    await fail(store, { retryInMs: 0 })
    const [stopped] = await webhooks.list()
    assert.partialDeepStrictEqual(stopped, { state: 'stopped', failures: 1 })
    await assertNothingDue(store)

    assert.equal(await webhooks.retry(a), true)
    assert.deepEqual(await webhooks.list(), working)
    assert.deepEqual(idsOf(await claimed(store)), [1n])
  },
}

const administration: Record<string, OutboxCase['run']> = {
  'keeps webhooks as they were added, in that order': async store => {
    assert.deepEqual(await store.webhooks.list(), [])
    await addWebhooks(store, b, a)

    const state = { events: ['added'], state: 'active', failures: 0 }
    const added = (id: WebhookId, n: number) => ({
      id,
      url: `https://${id}.example/`,
      allowsPrivate: n > 0,
      createdAt: new Date(n),
      ...state,
    })
    assert.deepEqual(await store.webhooks.list(), [added(b, 0), added(a, 1)])
    const [figures] = await store.webhooks.outbox.figures()
    assert.partialDeepStrictEqual(figures, { state: 'active', waiting: 0, givenUp: 0 })
    assert(figures && !('oldestMs' in figures), 'nothing is the oldest')
  },
  'signs with the newest secret': async store => {
    const first = mintSecret()
    const second = mintSecret()
    await addWebhook(store, a, { secret: first })
    await store.plants.insert(plant(1n))
    assert.equal((await claimed(store, { leaseMs: 0 })).secret, first)
    assert.equal(await store.webhooks.rotate(a, second), true)
    assert.equal((await claimed(store, { leaseMs: 0 })).secret, second)
  },
  'forgets a removed webhook with its deliveries, and no others': async store => {
    const { webhooks } = store
    await addWebhooks(store, a, b)
    await insertPlants(store, 3)
    const claim = await claimed(store)
    assert.equal(await webhooks.remove(claim.webhook.id), true)

    const kept = claim.webhook.id === a ? b : a
    const figures = await webhooks.outbox.figures()
    const listed = await webhooks.list()
    assert.deepEqual([listed.length, listed[0]?.id], [1, kept])
    assert.deepEqual([figures.length, figures[0]?.waiting], [1, 3])
    assert.deepEqual(await webhooks.outbox.deliveriesOf(claim.webhook.id, 10), [])
    await deliver(store, claim)
    await store.plants.insert(plant(3n))
    assert.deepEqual(idsOf(await claimed(store)), [0n, 1n, 2n, 3n])
  },
  'knows no webhook that was never added': async ({ webhooks }) => {
    const changes = [
      webhooks.remove(a),
      webhooks.retry(a),
      webhooks.rotate(a, mintSecret()),
      webhooks.setEvents(a, all),
    ]
    assert.deepEqual(await Promise.all(changes), [false, false, false, false])
    await webhooks.outbox.stop(a)
    assert.deepEqual(await webhooks.outbox.figures(), [])
    assert.deepEqual(await webhooks.outbox.deliveriesOf(a, 10), [])
  },
}

function ascending(x: bigint | string, y: typeof x): number {
  return x < y ? -1 : 1
}

const promises = { ...announcements, ...leases, ...failures, ...administration }

export const outboxContract: readonly OutboxCase[] = Object.entries(promises).map(
  ([name, run]) => ({ name, run }),
)

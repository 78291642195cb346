import type { Runner, Statement } from '@plant-store/engine'
import { createTestDatabase } from '@plant-store/harness/vitest'
import { openStorage, type Storage } from '@plant-store/persistence'
import type { WebhookId } from '@plant-store/webhooks'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { postgresWebhooks } from '../src/webhooks/postgres.ts'
import { createOutbox } from '../src/webhooks/repository.ts'
import { sqliteWebhooks } from '../src/webhooks/sqlite.ts'
import { addWebhook } from './outbox-contract.ts'
import { plant, plantId } from './store-folder.ts'
import { type Subject, subjects } from './store-subjects.ts'

/** The ids and names of the plants that wait for any webhook, in the order as created. */
async function announced({ webhooks }: Storage): Promise<string[]> {
  const [webhook] = await webhooks.list()
  const deliveries = await webhooks.outbox.deliveriesOf(webhook?.id as WebhookId, 10_000)
  return deliveries.map(({ added }) => `${added.plant.id} ${added.plant.name}`)
}

describe.each(['SQLite', 'PostgreSQL'] as const)('on %s', name => {
  const stack = new AsyncDisposableStack()
  let store: Subject
  let storage: Storage
  beforeAll(async () => {
    store = stack.use(await subjects[name]())
    storage = stack.use(await openStorage({ url: store.url }))
  })
  beforeEach(async () => {
    for (const table of ['outbox', 'webhooks', 'plants']) {
      await store.ask(`delete from ${table} returning 1`)
    }
  })
  afterAll(() => stack.disposeAsync())

  test('a plant is announced however it is added, and not when it is replaced or refused', async () => {
    await addWebhook(storage)
    const { plants } = storage
    await plants.insert(plant(1, 'insert'))
    await plants.insert(plant(1, 'taken'))
    await plants.insertAll([plant(2, 'insertAll'), plant(1, 'taken'), plant(2, 'taken')])
    await plants.save(plant(3, 'save'))
    const version = await plants.save(plant(3, 'replaced'))
    await plants.saveIf(plant(4, 'saveIf'), undefined)
    await plants.saveIf(plant(4, 'taken'), undefined)
    await plants.saveIf(plant(3, 'replaced'), version)
    await plants.saveIf(plant(4, 'of another version'), version)
    await plants.remove(plantId(4))
    await plants.save(plant(4, 'once more'))
    await plants.saveAll([
      plant(6, 'saveAll'),
      plant(1, 'replaced'),
      plant(3, 'replaced'),
      plant(6, 'again'),
    ])
    expect(await announced(storage)).toEqual([
      '1 insert',
      '2 insertAll',
      '3 save',
      '4 saveIf',
      '4 once more',
      '6 saveAll',
    ])
  })

  test('the event has the version of the plant as it was added', async () => {
    await addWebhook(storage)
    const before = Date.now()
    await storage.plants.insert(plant(1))
    const version = (await storage.plants.find(plantId(1)))?.version
    const [delivery] = await storage.webhooks.outbox.deliveriesOf(
      'webhook' as WebhookId,
      1,
    )
    expect(delivery?.added).toMatchObject({ plant: plant(1), version })
    expect(Math.abs(Number(delivery?.added.addedAt) - before)).toBeLessThan(60_000)
  })

  test('a webhook is retried and removed with all that waits for it, however much, or with nothing', async () => {
    const [many, none] = ['many', 'none'].map(each => each as WebhookId) as [
      WebhookId,
      WebhookId,
    ]
    await addWebhook(storage, many)
    const count = 4_100
    await storage.plants.insertAll(Array.from({ length: count }, (_, n) => plant(n)))
    await addWebhook(storage, none)
    await store.ask('update outbox set next_at = null, attempts = 1 returning 1')
    expect(await storage.webhooks.retry(many)).toBe(true)
    const waiting = async () =>
      Object.fromEntries(
        (await storage.webhooks.outbox.figures()).map(each => [
          each.webhook,
          each.waiting,
        ]),
      )
    expect(await waiting()).toEqual({ many: count, none: 0 })
    const ofNone = (await storage.webhooks.outbox.figures()).find(
      ({ webhook }) => webhook === none,
    )
    expect(ofNone).toEqual({
      webhook: none,
      state: 'active',
      waiting: 0,
      givenUp: 0,
    })
    expect(await storage.webhooks.remove(none)).toBe(true)
    expect(await waiting()).toEqual({ many: count })
    expect(await storage.webhooks.remove(many)).toBe(true)
    expect(await waiting()).toEqual({})
    expect(await store.ask('select position from outbox limit 1')).toEqual([])
  })

  test('what is added unannounced is not announced, and all that is added beside it is', async () => {
    await addWebhook(storage)
    const { plants } = storage
    const { unannounced } = plants
    const outcomes = await Promise.all([
      plants.insertAll([plant(1), plant(2)]),
      unannounced.insertAll([plant(3), plant(1), plant(4)]),
      plants.insert(plant(5)),
      unannounced.insertAll([plant(6), plant(3)]),
      plants.save(plant(7)),
      unannounced.insertAll([]),
      plants.insertAll([plant(8)]),
    ])
    expect(outcomes[1]).toEqual(['inserted', 'id-taken', 'inserted'])
    expect(outcomes[3]).toEqual(['inserted', 'id-taken'])
    expect(outcomes[5]).toEqual([])
    await plants.remove(plantId(1))
    expect(await unannounced.insertAll([plant(1)])).toEqual(['inserted'])
    await unannounced.saveAll([plant(10), plant(3), plant(10)])
    await unannounced.insert(plant(14))
    await unannounced.save(plant(15))
    await unannounced.saveIf(plant(16), undefined)
    await plants.saveAll([plant(11)])
    await plants.insert(plant(13))
    const ids = (await announced(storage)).map(each => Number(each.split(' ')[0]))
    // PostgreSQL makes changes of one kind together.
    expect(ids.sort((a, b) => a - b)).toEqual([1, 2, 5, 7, 8, 11, 13])
  })

  test('however much waits, what is due is found by the index', async () => {
    await addWebhook(storage)
    await storage.plants.insertAll(Array.from({ length: 10_000 }, (_, n) => plant(n)))
    if (name === 'PostgreSQL') {
      await store.ask('analyze plants, webhooks, outbox')
    }
    const explain = name === 'SQLite' ? 'explain query plan' : 'explain'
    const { due, dueDeliveries } =
      name === 'SQLite' ? sqliteWebhooks() : postgresWebhooks()
    for (const statement of [due, dueDeliveries]) {
      const parameters = ["'webhook'", '100', '1000000']
      const sql = statement.sql.replaceAll(/\?|\$\d/g, () => parameters.shift() as string)
      const plan = (await store.ask(`${explain} ${sql}`)).flat().join('\n')
      expect(plan).toContain('outbox_due')
      expect(plan).not.toMatch(/\b(Seq Scan on|SCAN) outbox/)
    }
  })
})

test('a webhook that has nothing left to deliver once it is leased is released, and the next one is claimed', async () => {
  const statements = sqliteWebhooks()
  const submitted: [Statement, object][] = []
  const row = {
    url: 'https://a.example/',
    allows_private: 0n,
    created_at: 0n,
    secret: 's',
  }
  const state = { is_stopped: 0n, failures: 0n, failing_since: null, failing_for_ms: 0n }
  const answers: Record<string, readonly object[]> = {
    due: ['gone', 'next'].map(id => ({ ...row, ...state, id, lease: `lease of ${id}` })),
    gone: [],
    next: [
      {
        position: 7n,
        version: 1n,
        added_at: 0n,
        attempts: 0n,
        id: 1n,
        name: 'a',
        tag: null,
      },
    ],
  }
  const runner: Pick<Runner, 'bind' | 'submit' | 'submitAll' | 'read'> = {
    bind(statement, given) {
      submitted.push([statement, given])
      return ['']
    },
    async submit(statement, given) {
      submitted.push([statement, given])
      return 1
    },
    submitAll: async changes => changes.map(() => 1),
    read: async (_, given) => answers[(given as { id?: string }).id ?? 'due'] as never,
  }
  const outbox = createOutbox(runner as Runner, statements)
  const claim = await outbox.claim({ leaseMs: 60_000, rowsMax: 5, textBytesMax: 1_000 })
  expect([claim?.webhook.id, claim?.deliveries.map(({ id }) => id)]).toEqual([
    'next',
    [7n],
  ])
  const lease = { lease: expect.any(String), leaseMs: 60_000n }
  const outcome = { delivered: 0n, failed: 0n, stops: 0n, claimInMs: 0n }
  const [, first] = submitted[0] as [Statement, { lease: string }]
  expect(submitted).toEqual([
    [statements.lease, { id: 'gone', lastLease: 'lease of gone', ...lease }],
    [statements.release, { id: 'gone', lease: first.lease, ...outcome }],
    [
      statements.lease,
      { id: 'next', lastLease: 'lease of next', ...lease, lease: claim?.lease },
    ],
  ])
})

test('on PostgreSQL a webhook is not answered for before every plant is there that will not be announced to it', async () => {
  await using database = await createTestDatabase()
  await using first = await openStorage({ url: database.url })
  await using second = await openStorage({ url: database.url })
  const other = new pg.Client(database.url)
  await other.connect()
  // Changes are made in order of id.
  await first.plants.insert(plant(9))
  await other.query('begin')
  await other.query('select from plants where id = 9 for update')
  const adding = Promise.all([
    first.plants.insert(plant(2)),
    first.plants.remove(plantId(9)),
  ])
  // On another connection: a transaction sees the same activity as at first.
  const waits = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`
  const waiting = (count: number) =>
    expect.poll(() => database.query(waits)).toHaveLength(count)
  try {
    await waiting(1)
    const thereOnceAnswered = addWebhook(second).then(() =>
      database.query('select id::int from plants'),
    )
    await Promise.race([thereOnceAnswered, waiting(2)])
    await other.query('commit')
    expect(await thereOnceAnswered).toEqual([{ id: 2 }])
    await adding
  } finally {
    await other.end()
  }
  expect(await announced(first)).toEqual([])
})

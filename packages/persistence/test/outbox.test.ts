import { postgresDialect, sqliteDialect } from '@plant-store/engine'
import { createTestDatabase } from '@plant-store/harness/vitest'
import { openStorage, type Storage } from '@plant-store/persistence'
import {
  mintSecret,
  type WebhookFigures,
  type WebhookId,
  webhookEvents,
} from '@plant-store/webhooks'
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { webhookStatements } from '../src/webhooks/statements.ts'
import { databases, plant, plantId, useStore } from './places.ts'

const webhookId = 'webhook' as WebhookId

/** Adds a webhook of this name. */
function addWebhook({ webhooks }: Storage, name: string = webhookId) {
  const webhook = {
    id: name as WebhookId,
    url: `https://${name}.example/`,
    allowsPrivate: false,
    events: webhookEvents,
    createdAt: new Date(0),
  }
  return webhooks.add(webhook, mintSecret())
}

function plantsUpTo(count: number) {
  return Array.from({ length: count }, (_, index) => plant(index))
}

const tables = ['outbox', 'webhooks', 'plants']

describe.each(databases)('on %s a webhook', name => {
  const store = useStore(name, tables)
  const many = 'many' as WebhookId
  const none = 'none' as WebhookId
  const count = 4_100

  async function figuresOf(id: WebhookId): Promise<WebhookFigures | undefined> {
    const figures = await store.storage.webhooks.outbox.figures()
    return figures.find(({ webhook }) => webhook === id)
  }

  test('is retried and removed with all that waits for it, however much', async () => {
    const { webhooks, plants } = store.storage
    await addWebhook(store.storage, many)
    await plants.insertAll(plantsUpTo(count))
    await addWebhook(store.storage, none)
    await store.place.ask('update outbox set next_at = null, attempts = 1')

    expect(await webhooks.retry(many)).toBe(true)
    expect(await figuresOf(many)).toMatchObject({ waiting: count, givenUp: 0 })

    expect(await webhooks.remove(none)).toBe(true)
    expect(await figuresOf(many)).toMatchObject({ waiting: count })

    expect(await webhooks.remove(many)).toBe(true)
    expect(await webhooks.outbox.figures()).toEqual([])
    expect(await store.place.ask('select position from outbox limit 1')).toEqual([])
  })

  test('with nothing due is released, and the next one is tried', async () => {
    const { webhooks, plants } = store.storage
    const claim = (textBytesMax: number) =>
      webhooks.outbox.claim({ leaseMs: 60_000, rowsMax: 5, textBytesMax })
    await addWebhook(store.storage, many)
    await addWebhook(store.storage, none)
    await plants.insert(plant(1))

    // No text fits, as if another courier had sent all.
    const nothing = await claim(0)
    const tried = await store.place.ask('select id from webhooks where leased_at > 0')
    const claims = [await claim(1_000), await claim(1_000)]

    expect(nothing).toBeUndefined()
    expect(tried).toHaveLength(2)
    expect(claims.map(each => each?.webhook.id).toSorted()).toEqual([many, none])
  })
})

describe.each(databases)('on %s', name => {
  const store = useStore(name, tables)

  test('indexes find what is due and what failed, however much waits', async () => {
    await addWebhook(store.storage)
    await store.storage.plants.insertAll(plantsUpTo(10_000))
    if (name === 'PostgreSQL') {
      await store.place.ask('analyze plants, webhooks, outbox')
    }
    const statements = webhookStatements(
      name === 'SQLite' ? sqliteDialect : postgresDialect,
    )
    const planOf = async (statement: 'due' | 'dueDeliveries') => {
      const explain = name === 'SQLite' ? 'explain query plan' : 'explain'
      const values = ["'webhook'", '100', '1000000']
      const { sql } = statements[statement]
      const filled = sql.replaceAll(/\?|\$\d/g, () => `${values.shift()}`)
      return (await store.place.ask(`${explain} ${filled}`)).flat().join('\n')
    }

    const due = await planOf('due')
    const deliveries = await planOf('dueDeliveries')

    for (const [what, plan] of Object.entries({ due, deliveries })) {
      expect(plan, what).toContain('outbox_due')
      expect(plan, what).not.toMatch(/\b(Seq Scan on|SCAN) outbox/)
    }
    expect(due).toContain('outbox_retries')
  })
})

test('on PostgreSQL adding a webhook waits for changes that are being made', async () => {
  await using database = await createTestDatabase()
  await using first = await openStorage({ url: database.url })
  await using second = await openStorage({ url: database.url })
  const other = new pg.Client(database.url)
  await other.connect()
  // Changes are made in order of id, so 2 is inserted when 9 waits for the lock.
  await first.plants.insert(plant(9))
  await other.query('begin')
  await other.query('select from plants where id = 9 for update')
  const adding = Promise.all([
    first.plants.insert(plant(2)),
    first.plants.remove(plantId(9)),
  ])
  // This asks on another connection, because a transaction sees the same activity as at
  // first.
  const waits = `
    select 1 from pg_stat_activity
    where wait_event_type = 'Lock' and datname = current_database()`
  const untilWaiting = (count: number) =>
    expect.poll(() => database.query(waits)).toHaveLength(count)

  try {
    await untilWaiting(1)
    const storedOnceAnswered = addWebhook(second).then(() =>
      database.query('select id::int from plants'),
    )
    await Promise.race([storedOnceAnswered, untilWaiting(2)])
    await other.query('commit')
    expect(await storedOnceAnswered).toEqual([{ id: 2 }])
    await adding
  } finally {
    await other.end()
  }

  expect(await first.webhooks.outbox.deliveriesOf(webhookId, 10)).toEqual([])
})

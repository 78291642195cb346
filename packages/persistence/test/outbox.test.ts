import { postgresDialect, type Runner, sqliteDialect } from '@plant-store/engine'
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
import { createOutbox } from '../src/webhooks/repository.ts'
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

test('a claim releases a webhook with nothing due, and tries the next', async () => {
  const statements = webhookStatements(sqliteDialect)
  const rowsBy: Readonly<Record<string, readonly object[]>> = {
    due: [
      { id: 'gone', events: 'added', lease: 'lease of gone' },
      { id: 'next', events: 'added', lease: 'lease of next' },
    ],
    gone: [],
    next: [{ position: 7n, version: 1n, id: 1n, name: 'a', tag: null }],
  }
  const submitted: [name: string, values: object][] = []
  const names = new Map<unknown, string>(
    Object.entries(statements).map(([name, statement]) => [statement, name]),
  )
  const runner: Pick<Runner, 'submit' | 'read'> = {
    async submit(statement, values) {
      submitted.push([`${names.get(statement)}`, values])
      return 1
    },
    async read(_, values) {
      const { id = 'due' } = values as { id?: string }
      return rowsBy[id] as never
    },
  }
  const outbox = createOutbox(runner as Runner, statements)

  const claim = await outbox.claim({ leaseMs: 60_000, rowsMax: 5, textBytesMax: 1_000 })

  expect(claim?.webhook.id).toBe('next')
  expect(claim?.deliveries.map(({ id }) => id)).toEqual([7n])
  expect(submitted).toMatchObject([
    ['lease', { id: 'gone', lastLease: 'lease of gone', leaseMs: 60_000n }],
    ['release', { id: 'gone', delivered: 0n, failed: 0n, stops: 0n, claimInMs: 0n }],
    ['lease', { id: 'next', lastLease: 'lease of next', lease: claim?.lease }],
  ])
  const [leased, released] = submitted.map(([, values]) => values)
  expect(released).toHaveProperty('lease', (leased as { lease: string }).lease)
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

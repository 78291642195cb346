import { setTimeout as sleep } from 'node:timers/promises'
import { hasPgbouncer, startPgbouncer } from '@plant-store/harness/pgbouncer'
import {
  createDatabase,
  type PostgresServer,
  startPostgres,
  type TestDatabase,
} from '@plant-store/harness/postgres'
import { createRandom } from '@plant-store/harness/random'
import { needs } from '@plant-store/harness/vitest'
import { openStorage, type Storage } from '@plant-store/persistence'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startProxy } from './proxy.ts'
import { addWebhook, plant, plantId } from './store-folder.ts'

const stack = new AsyncDisposableStack()
let server: PostgresServer
let database: TestDatabase
let admin: pg.Pool
const urls = { directly: '', 'behind pgbouncer': '' }
const ask = async (sql: string) => (await admin.query({ text: sql, rowMode: 'array' })).rows.flat()

beforeAll(async () => {
  server = stack.use(await startPostgres({ max_connections: '60' }))
  database = await createDatabase(server.url)
  urls.directly = database.url
  if (hasPgbouncer) {
    const settings = { pool_mode: 'transaction', default_pool_size: '8' }
    const pooler = stack.use(await startPgbouncer(server.url, settings))
    const path = `${new URL(database.url).pathname}?pool_mode=transaction`
    urls['behind pgbouncer'] = new URL(path, pooler.url).href
  }
  // Of one connection, which takes queries in turn.
  admin = new pg.Pool({ connectionString: database.url, max: 1 })
  stack.defer(() => admin.end())
  await using storage = await open(database.url)
  await addWebhook(storage)
})
beforeEach(() => ask('truncate plants, outbox'))
afterAll(() => stack.disposeAsync())

const open = (url: string) => openStorage({ url, timeoutMs: 5_000 })
const idsIn = (table: 'plants' | 'outbox') => ask(`select id::int from ${table} order by id`)

/** Waits until the server has ended what it had got on connections that were cut. */
async function settled(): Promise<void> {
  const busy = `select 1 from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
    and (state <> 'idle' or wait_event <> 'ClientRead')`
  while ((await ask(busy)).length > 0) await sleep(1)
}

/** Changes that share a transaction. Plants 1 and 2 are there before it, and those in `after` if it succeeds. */
const groups = {
  'of single changes': {
    after: '2,3,4,5',
    change: ({ plants }: Storage) =>
      Promise.all([
        plants.save(plant(3)),
        plants.remove(plantId(1)),
        plants.insert(plant(4)),
        plants.save(plant(2, 'replaced')),
        plants.save(plant(5)),
      ]),
  },
  'of unannounced changes': {
    after: '1,2,3,4,5',
    change: ({ plants }: Storage) =>
      Promise.all([
        plants.unannounced.insertAll([plant(5)]),
        plants.unannounced.saveAll([plant(2, 'replaced'), plant(3), plant(2, 'again'), plant(4)]),
      ]),
  },
}
const faults = ['spoiled', 'the last to arrive', 'the last to arrive, and its begin is cancelled']

const ways = [
  ['directly' as const, faults, {}],
  // Whose connections to the server outlive ours.
  ['behind pgbouncer' as const, faults.slice(-1), needs('pgbouncer', hasPgbouncer)],
] as const

describe.each(ways)('%s', (way, possible, options) => {
  describe.each(Object.entries(groups))('a group %s is stored as a whole or not at all', (_, group) => {
    test.each(possible)('if any of its messages is %s', { timeout: 120_000, ...options }, async what => {
      await using proxy = await startProxy(urls[way])
      await using far = await open(proxy.url)
      await using other = await open(database.url)
      const wrong: unknown[] = []
      for (let faultAt = 0, isOver = false; !isOver; faultAt++) {
        await ask('truncate plants, outbox')
        // Opens a connection, if the last one was cut.
        const before = () => far.plants.unannounced.saveAll([plant(1), plant(2)])
        await before().catch(before)
        let count = 0
        proxy.tamper(message => {
          if (count++ === faultAt) return what === 'spoiled' ? 'spoil' : 'cut'
          return what.includes('cancelled') && message.startsWith('begin') ? 'spoil' : undefined
        })
        const succeeded = await group.change(far).then(
          () => true,
          () => false,
        )
        proxy.tamper()
        isOver = count <= faultAt
        await settled()
        const stored = `${await idsIn('plants')}`
        const isWhole = stored === group.after || (stored === '1,2' && !succeeded)
        // What failed must not silence what another server adds.
        await other.plants.insert(plant(100))
        const isHeard = (await idsIn('outbox')).includes(100)
        if (!isWhole || !isHeard) wrong.push({ faultAt, succeeded, stored, isHeard })
      }
      expect(wrong).toEqual([])
    })
  })

  test('two servers whose begins are cancelled 100 times announce what they say, and nothing else', {
    timeout: 120_000,
    ...options,
  }, async () => {
    const random = createRandom(1)
    let cancelled = 0
    let nextId = 0
    let batches = 0
    const inPart: number[] = []
    const answered: number[] = []
    const announcing = new Set<number>()
    const work = async ({ plants }: Storage) => {
      while (cancelled < 100) {
        const first = nextId
        nextId += 10
        const ids = Array.from({ length: 10 }, (_, n) => first + n)
        const isSilent = random.chance(0.5)
        const all = ids.map(id => plant(id))
        if (!isSilent) for (const id of ids) announcing.add(id)
        // In one transaction: half of them new plants, and half of them replaced or new.
        const added = isSilent
          ? Promise.all([
              plants.unannounced.insertAll(all.slice(5)),
              plants.unannounced.saveAll(all.slice(0, 5)),
            ])
          : Promise.all([...all.slice(5).map(plants.insert), ...all.slice(0, 5).map(plants.save)])
        const isAnswered = await added.then(
          () => true,
          () => false,
        )
        batches++
        if (isAnswered) answered.push(...ids)
        const [count] = await ask(
          `select count(*)::int from plants where id between ${first} and ${first + 9}`,
        )
        if (count !== 0 && count !== 10) inPart.push(first)
      }
    }

    {
      await using proxies = new AsyncDisposableStack()
      const workers: Promise<void>[] = []
      for (let n = 0; n < 2; n++) {
        const proxy = proxies.use(await startProxy(urls[way]))
        const storage = proxies.use(await open(proxy.url))
        proxy.tamper(message => {
          if (!message.startsWith('begin') || !random.chance(0.6)) return undefined
          cancelled++
          return 'spoil'
        })
        workers.push(...Array.from({ length: 4 }, () => work(storage)))
      }
      await Promise.all(workers)
    }
    await settled()
    const stored = new Set(await idsIn('plants'))
    const heard = new Set(await idsIn('outbox'))
    expect(answered.filter(id => !stored.has(id))).toEqual([])
    expect([...stored].filter(id => announcing.has(id) !== heard.has(id))).toEqual([])
    expect(inPart).toEqual([])
    expect(answered.length).toBeGreaterThan(100)
    expect(answered.length).toBeLessThan(batches * 10)
  })
})

test('a webhook is not answered for before every plant is there that will not be announced to it', async () => {
  await ask('delete from webhooks')
  await using first = await open(database.url)
  await using second = await open(database.url)
  // Changes are made in order of id.
  await first.plants.insert(plant(9))
  await ask('begin')
  await ask('select from plants where id = 9 for update')
  const answered: string[] = []
  const adding = Promise.all([first.plants.insert(plant(2)), first.plants.remove(plantId(9))]).then(() =>
    answered.push('plant'),
  )
  // On another connection: a transaction sees the same activity as at first.
  const waits = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`
  const waiting = (count: number) => expect.poll(() => database.query(waits)).toHaveLength(count)
  try {
    await waiting(1)
    const webhook = addWebhook(second).then(() => answered.push('webhook'))
    await Promise.race([webhook, waiting(2)])
    await ask('commit')
    await Promise.all([adding, webhook])
  } finally {
    await ask('rollback')
  }
  expect(answered).toEqual(['plant', 'webhook'])
  expect(await idsIn('outbox')).toEqual([])
})

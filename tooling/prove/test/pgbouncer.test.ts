import { parsePlant } from '@plant-store/domain'
import { plantRepositoryContract } from '@plant-store/domain/testing'
import { hasPgbouncer, startPgbouncer } from '@plant-store/harness/pgbouncer'
import {
  createDatabase,
  type PostgresServer,
  startPostgres,
} from '@plant-store/harness/postgres'
import { needs } from '@plant-store/harness/vitest'
import { openReader, openStorage, type Storage } from '@plant-store/persistence'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'

const timeoutMs = 1_000
const pgbouncer = needs('pgbouncer', hasPgbouncer)
const plant = (id: number | bigint, name = `plant ${id}`) =>
  parsePlant({ id: BigInt(id), name })
const many = (count: number, from = 0) =>
  Array.from({ length: count }, (_, n) => plant(from + n))

let server: PostgresServer
beforeAll(async () => {
  server = await startPostgres({ max_connections: '60' })
})
afterAll(() => server[Symbol.asyncDispose]())

/** A database, and its URL behind a pgbouncer. */
async function startPooled(mode: string, size?: string) {
  await using stack = new AsyncDisposableStack()
  const settings = {
    pool_mode: mode,
    ...(size !== undefined && { default_pool_size: size }),
  }
  const pooler = stack.use(await startPgbouncer(server.url, settings))
  const database = stack.use(await createDatabase(server.url))
  const parameters = mode === 'transaction' ? '?pool_mode=transaction' : ''
  const url = new URL(new URL(database.url).pathname + parameters, pooler.url).href
  const owned = stack.move()
  return { database, url, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

// By session it differs from a server in nothing but its connections, of which a test
// below takes the last.
describe('behind pgbouncer that pools by transaction', pgbouncer, () => {
  let pooled: Awaited<ReturnType<typeof startPooled>>
  let database: typeof pooled.database
  let url: string

  beforeAll(async () => {
    pooled = await startPooled('transaction', '2')
    database = pooled.database
    url = pooled.url
    // A client that relies on the server's own settings loses changes, and waits for a
    // lock for ever.
    await database.query(
      `alter database ${new URL(url).pathname.slice(1)} set synchronous_commit = off`,
    )
    await (await open())[Symbol.asyncDispose]()
  })
  beforeEach(() => empty())
  afterAll(() => pooled[Symbol.asyncDispose]())
  const open = () => openStorage({ url, timeoutMs })
  const empty = () => database.query('truncate plants, access_tokens')

  test('the port of plants', async () => {
    await using storage = await openStorage({ url })
    for (const { run } of plantRepositoryContract) {
      await empty()
      await run(storage.plants)
    }
  })

  test('no request of several stores fails for want of a connection', async () => {
    // All of them wait for two connections, on a machine that may be busy.
    await using first = await openStorage({ url, timeoutMs: 30_000 })
    await using second = await openStorage({ url, timeoutMs: 30_000 })
    const stores = [first, second]
    let next = 0
    const visitor = async () => {
      for (let n = 0; n < 10; n++) {
        const one = plant(next++)
        const store = stores[n % 2] as Storage
        expect(await store.plants.insert(one), 'insert').toBe('inserted')
        const found = await store.plants.find(one.id)
        expect(found?.plant, 'find').toEqual(one)
        await store.plants.save(one)
        await store.plants.page({ limit: 5 })
        const isRemoved = n % 3 === 0 && (await store.plants.remove(one.id))
        expect(isRemoved, 'remove').toBe(n % 3 === 0)
        if (n % 10 === 0) {
          await store.check()
        }
      }
    }
    await Promise.all(Array.from({ length: 64 }, visitor))
    expect(await database.query('select count(*)::int as count from plants')).toEqual([
      { count: 64 * 6 },
    ])
  })

  test('nobody calls a commit a success that a synchronous standby has not', async () => {
    await using storage = await open()
    const setStandby = async (name: string) => {
      await database.query(`alter system set synchronous_standby_names = '${name}'`)
      await database.query('select pg_reload_conf()')
      const current = `select 1 from pg_settings where name = 'synchronous_standby_names' and setting = '${name}'`
      await expect.poll(() => database.query(current)).toHaveLength(1)
    }
    await setStandby('nobody')
    try {
      const outcome = await storage.plants.insert(plant(1)).catch(error => error)
      expect(outcome).toMatchObject({ code: 'store-unavailable' })
    } finally {
      await setStandby('')
    }
    await expect
      .poll(() => storage.plants.insert(plant(2)).catch(error => error))
      .toBe('inserted')
  })

  test('the server gives up a statement that takes too long', async () => {
    await using storage = await open()
    await storage.plants.insert(plant(1))
    const other = new pg.Client({ connectionString: database.url })
    await other.connect()
    await other.query('begin; lock table plants in access exclusive mode')
    const answers = [
      storage.plants.find(plant(1).id),
      storage.plants.insert(plant(2)),
      storage.check(),
    ]
    const unavailable = { reason: { code: 'store-unavailable' } }
    expect(await Promise.allSettled(answers)).toMatchObject(
      answers.map(() => unavailable),
    )
    const waiting = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`
    await expect.poll(() => database.query(waiting)).toEqual([])
    await other.query('rollback')
    await other.end()
    await expect
      .poll(() => storage.plants.find(plant(1).id).catch(error => error))
      .toMatchObject({ plant: plant(1) })
  })

  test('it leaves nothing behind for others who get its connections', async () => {
    await using storage = await open()
    await Promise.all(many(20).map(one => storage.plants.insert(one)))
    await storage.plants.page({ limit: 5 })
    await storage.plants.saveAll(many(20, 100))
    const own = `select pid, query from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`
    expect((await database.query(own)).length).toBeGreaterThan(0)
    for (let n = 0; n < 5; n++) {
      const other = new pg.Client({ connectionString: url })
      await other.connect()
      const { rows } = await other.query(`
        select current_setting('synchronous_commit') as commit, current_setting('statement_timeout') as timeout,
          (select count(*)::int from pg_prepared_statements) as prepared`)
      await other.end()
      expect(rows).toEqual([{ commit: 'off', timeout: '0', prepared: 0 }])
    }
  })

  test('a snapshot shows one moment while others write, for several at once', async () => {
    await using storage = await open()
    await storage.plants.insertAll(many(2_500))
    await using reader = await openReader(url)
    const { plants } = await reader.counts()
    const pieces = reader.all('plants')[Symbol.asyncIterator]()
    const first = await pieces.next()
    await database.query('delete from plants where id > 1000')
    let count = first.value?.length ?? 0
    for (let piece = await pieces.next(); !piece.done; piece = await pieces.next()) {
      count += piece.value.length
    }
    expect([plants, count]).toEqual([2_500, 2_500])
    await storage.plants.save(plant(5, 'again'))
  })
})

test(
  'a writer gets its turn at a single connection among endless readers',
  pgbouncer,
  async () => {
    await using pooled = await startPooled('transaction', '1')
    await using storage = await openStorage({ url: pooled.url, timeoutMs: 3_000 })
    const longPlants = many(500).map(({ id }) => plant(id, 'x'.repeat(2_000)))
    await Promise.all(longPlants.map(one => storage.plants.insert(one)))
    let isOver = false
    const readOn = async () => {
      // Late ones are the readers' own doing.
      while (!isOver) {
        await storage.plants.page({ limit: 100 }).catch(() => {})
      }
    }
    const readers = Promise.all(Array.from({ length: 300 }, readOn))
    try {
      for (const one of many(10, 1_000)) {
        expect(await storage.plants.insert(one), `${one.id}`).toBe('inserted')
      }
    } finally {
      isOver = true
    }
    await readers
  },
)

test(
  'it is not ready while pgbouncer has no connection for changes',
  pgbouncer,
  async () => {
    await using pooled = await startPooled('session', '1')
    await using storage = await openStorage({ url: pooled.url, timeoutMs })
    // Takes the only one.
    expect(await storage.plants.find(plant(1).id)).toBeUndefined()
    await expect(storage.check()).rejects.toMatchObject({ code: 'store-unavailable' })
  },
)

test('behind pgbouncer that pools by statement it is refused', pgbouncer, async () => {
  await using pooled = await startPooled('statement')
  await (await openStorage({ url: pooled.database.url }))[Symbol.asyncDispose]()
  const reason = 'transaction blocks not allowed in statement pooling mode'
  await expect(openStorage({ url: pooled.url })).rejects.toThrow(reason)
})

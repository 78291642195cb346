import { parsePlant } from '@plant-store/domain'
import { plantRepositoryContract } from '@plant-store/domain/testing'
import { hasPgbouncer, startPgbouncer } from '@plant-store/harness/pgbouncer'
import {
  createDatabase,
  type PostgresServer,
  startPostgres,
} from '@plant-store/harness/postgres'
import { needs } from '@plant-store/harness/vitest'
import { openStorage } from '@plant-store/persistence'
import pg from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'

const timeoutMs = 1_000
const plant = (id: number) => parsePlant({ id: BigInt(id), name: `plant ${id}` })
const unavailable = { code: 'store-unavailable' }

describe('behind pgbouncer', needs('pgbouncer', hasPgbouncer), () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await startPostgres({ max_connections: '60' })
    return () => server[Symbol.asyncDispose]()
  })

  /** A database, and its URL behind a pgbouncer with so many connections. */
  async function startPooled(pool_mode: string, default_pool_size: string) {
    await using stack = new AsyncDisposableStack()
    const settings = { pool_mode, default_pool_size }
    const pooler = stack.use(await startPgbouncer(server.url, settings))
    const database = stack.use(await createDatabase(server.url))
    const parameters = pool_mode === 'transaction' ? '?pool_mode=transaction' : ''
    const { pathname } = new URL(database.url)
    // A client that relies on the server's own settings loses changes.
    const loose = `alter database ${pathname.slice(1)} set synchronous_commit = off`
    await database.query(loose)
    const url = new URL(pathname + parameters, pooler.url).href
    const owned = stack.move()
    return { database, url, [Symbol.asyncDispose]: () => owned.disposeAsync() }
  }

  test('by transaction, plants keep the contract of their port', async () => {
    await using pooled = await startPooled('transaction', '2')
    await using storage = await openStorage({ url: pooled.url })

    for (const { run } of plantRepositoryContract) {
      await pooled.database.query('truncate plants')
      await run(storage.plants)
    }
  })

  test('by transaction, one connection serves all requests of two stores', async () => {
    await using pooled = await startPooled('transaction', '1')
    // All of them wait for one connection, on a machine that may be busy.
    await using first = await openStorage({ url: pooled.url, timeoutMs: 30_000 })
    await using second = await openStorage({ url: pooled.url, timeoutMs: 30_000 })

    const visits = Array.from({ length: 300 }, async (_, n) => {
      const { plants } = n % 2 === 0 ? first : second
      const inserted = await plants.insert(plant(n))
      await plants.page({ limit: 5 })
      return [inserted, (await plants.find(plant(n).id))?.plant]
    })

    const expected = visits.map((_, n) => ['inserted', plant(n)])
    expect(await Promise.all(visits)).toEqual(expected)
  })

  test('by transaction, each change waits for a synchronous standby', async () => {
    await using pooled = await startPooled('transaction', '2')
    const { database } = pooled
    await using storage = await openStorage({ url: pooled.url, timeoutMs })
    const setStandby = async (name: string) => {
      await database.query(`alter system set synchronous_standby_names = '${name}'`)
      await database.query('select pg_reload_conf()')
      const current = `select 1 from pg_settings where name = 'synchronous_standby_names' and setting = '${name}'`
      await expect.poll(() => database.query(current)).toHaveLength(1)
    }

    await setStandby('nobody')
    const outcome = await storage.plants.insert(plant(1)).catch(error => error)
    await setStandby('')

    expect(outcome).toMatchObject(unavailable)
    const again = () => storage.plants.insert(plant(2)).catch(error => error)
    await expect.poll(again).toBe('inserted')
  })

  test('by transaction, late statements end, and settings stay its own', async () => {
    await using pooled = await startPooled('transaction', '2')
    const { database } = pooled
    await using storage = await openStorage({ url: pooled.url, timeoutMs })
    await storage.plants.insert(plant(1))
    const other = new pg.Client({ connectionString: database.url })
    await other.connect()
    await other.query('begin; lock table plants in access exclusive mode')

    const find = () => storage.plants.find(plant(1).id).catch(error => error)
    const late = await find()
    const waiting = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`
    await expect.poll(() => database.query(waiting)).toEqual([])
    await other.end()
    await expect.poll(find).toMatchObject({ plant: plant(1) })
    const neighbour = new pg.Client({ connectionString: pooled.url })
    await neighbour.connect()
    const { rows } = await neighbour.query(`
      select current_setting('synchronous_commit') as commit, current_setting('statement_timeout') as timeout,
        (select count(*)::int from pg_prepared_statements) as prepared`)
    await neighbour.end()

    expect(late).toMatchObject(unavailable)
    expect(rows).toEqual([{ commit: 'off', timeout: '0', prepared: 0 }])
  })

  test('by session, it is not ready without a connection for changes', async () => {
    await using pooled = await startPooled('session', '1')
    await using storage = await openStorage({ url: pooled.url, timeoutMs })

    // Takes the only one.
    expect(await storage.plants.find(plant(1).id)).toBeUndefined()
    await expect(storage.check()).rejects.toMatchObject(unavailable)
  })

  test('by statement, it is refused', async () => {
    await using pooled = await startPooled('statement', '2')
    await (await openStorage({ url: pooled.database.url }))[Symbol.asyncDispose]()

    const reason = 'transaction blocks not allowed in statement pooling mode'
    await expect(openStorage({ url: pooled.url })).rejects.toThrow(reason)
  })
})

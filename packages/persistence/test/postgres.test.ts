import { hashToken } from '@plant-store/access'
import {
  type Plant,
  type PlantRepository,
  type PlantVersion,
  parsePlant,
  type UnicodeText,
} from '@plant-store/domain'
import { createMemoryPlantRepository } from '@plant-store/domain/testing'
import type { TestDatabase } from '@plant-store/harness/postgres'
import { anySeed, createRandom } from '@plant-store/harness/random'
import { createTestDatabase, createTestSchema } from '@plant-store/harness/vitest'
import {
  attachStorage,
  type Commit,
  openStorage,
  type Storage,
  type StoreState,
} from '@plant-store/persistence'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { defaultGroupCommitLimits } from '../src/commit/group-commit.ts'
import { type ConnectionPool, createPool } from '../src/postgres/connection.ts'
import type { PostgresOptions } from '../src/storage.ts'

let database: TestDatabase
let storage: Storage

beforeAll(async () => {
  database = await createTestDatabase()
  storage = await openStorage({ url: database.url })
})
beforeEach(async () => {
  await database.query('truncate plants, access_tokens')
})
afterAll(async () => {
  await storage[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})

const plant = (id: number, name: string, tag?: string): Plant => parsePlant({ id: BigInt(id), name, tag })

test('changes of the same few plants that are all on their way at once take effect in their order', async () => {
  const seed = anySeed()
  const { below } = createRandom(seed)
  const memory = createMemoryPlantRepository()
  const ids = Array.from({ length: 8 }, (_, n) => plant(n, '').id)
  for (let round = 0; round < 20; round++) {
    // The versions of each store differ, but mark the same states.
    const before = await Promise.all(
      [storage.plants, memory].map(on => Promise.all(ids.map(async id => (await on.find(id))?.version))),
    )
    const changes = Array.from({ length: 200 }, (_, n) => {
      const one = plant(below(8), `plant ${n}`, below(2) === 0 ? undefined : `tag ${below(3)}`)
      const expected = (on: PlantRepository) => before[on === memory ? 1 : 0]?.[Number(one.id)]
      return (
        [
          on => on.insert(one),
          on => on.save(one),
          on => on.remove(one.id),
          on => on.saveIf(one, expected(on)),
          on => on.saveIf(one, undefined),
          on => on.removeIf(one.id, expected(on) ?? ('none' as PlantVersion)),
        ] as Change[]
      )[below(6)] as Change
    })
    const outcomes = await Promise.all(changes.map(change => change(storage.plants)))
    const wanted = await Promise.all(changes.map(change => change(memory)))
    const withoutVersion = (outcome: unknown) => (/^[0-9a-f]+$/.test(`${outcome}`) ? 'saved' : outcome)
    expect(outcomes.map(withoutVersion), `seed ${seed}`).toEqual(wanted.map(withoutVersion))
    expect(await storage.plants.page({ limit: 100 }), `seed ${seed}`).toEqual(
      await memory.page({ limit: 100 }),
    )
  }
})

test('a store that is joined has the same plants, reports its own commits, and closes its connections', async () => {
  await using own = await createTestDatabase()
  const begunMs = performance.now()
  const store = await openStorage({ url: own.url })
  const commits: Commit[] = []
  const onCommit = (commit: Commit) => void commits.push(commit)
  const joined = await attachStorage(store.share(), { onCommit })
  await store.plants.insert(plant(1, 'a'))
  expect(await joined.plants.insert(plant(2, 'b'))).toBe('inserted')
  expect((await store.plants.find(plant(2, '').id))?.plant).toEqual(plant(2, 'b'))
  expect(commits).toEqual([{ changes: 1, ms: expect.any(Number) }])
  expect(commits[0]?.ms).toBeLessThan(performance.now() - begunMs)
  await joined[Symbol.asyncDispose]()
  await store[Symbol.asyncDispose]()
  const others = `select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`
  await expect.poll(() => own.query(others)).toEqual([])
})

test('a server that is gone is an outage with its reason, and nothing looks for it once the store is closed', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const states: StoreState[] = []
  const server = { hosts: ['postgres://127.0.0.1:1/a'], poolMode: 'session', timeoutMs: 10_000 } as const
  const gone = await attachStorage(
    { kind: 'postgres', server, readConnectionsMax: 1, limits: defaultGroupCommitLimits },
    { onStateChange: state => states.push(state) },
  )
  const reason = 'connect ECONNREFUSED 127.0.0.1:1'
  await expect(gone.plants.find(plant(1, '').id)).rejects.toMatchObject({
    code: 'store-unavailable',
    message: 'the store is unavailable',
    cause: { message: reason },
  })
  expect(states).toEqual([{ ready: false, reason }])
  // Past the pause before the next attempt to connect, and before the next check.
  await vi.advanceTimersByTimeAsync(500)
  expect(vi.getTimerCount()).toBe(1)
  await gone[Symbol.asyncDispose]()
  expect(vi.getTimerCount()).toBe(0)
})

test('refuses a read while ten thousand are pending, and answers those', async () => {
  await using own = await openStorage({ url: database.url })
  const { id } = plant(1, 'a')
  await own.plants.insert(plant(1, 'a'))
  const reads = Array.from({ length: 10_000 }, () => own.plants.find(id))
  await expect(own.plants.find(id)).rejects.toMatchObject({ code: 'store-busy' })
  const found = await Promise.all(reads)
  expect(found.filter(each => each?.plant.id === id)).toHaveLength(10_000)
  expect((await own.plants.find(id))?.plant.id).toBe(id)
})

type Change = (on: Storage['plants']) => Promise<unknown>

test('finds plants by tags that are longer than an entry of an index, and differ at their end', async () => {
  const { below } = createRandom(1)
  const long = Array.from({ length: 50_000 }, () => String.fromCodePoint(0x4e00 + below(20_000))).join('')
  await storage.plants.insert(plant(1, 'a', `${long}a`))
  await storage.plants.insert(plant(2, 'b', `${long}b`))
  await storage.plants.save(plant(3, 'b', `${long}b`))
  const found = await storage.plants.page({ limit: 10, tag: plant(0, '', `${long}b`).tag as UnicodeText })
  expect(found.map(({ id }) => id)).toEqual([2n, 3n])
})

test('finds the plants of a tag by an index', async () => {
  await using own = await createTestSchema()
  const other = await openStorage({ url: own.url })
  await own.query(
    `insert into plants select n, 'plant', 'tag ' || n % 1000 from generate_series(1, 50000) as n; analyze plants`,
  )
  const tag = plant(0, '', 'tag 7').tag as UnicodeText
  // More often than the server plans for each value.
  for (let n = 0; n < 10; n++) expect(await other.plants.page({ limit: 100, tag })).toHaveLength(50)
  await other[Symbol.asyncDispose]()
  const counted = `select idx_tup_read::int as count from pg_stat_user_indexes
    where indexrelname = 'plants_by_tag' and schemaname = current_schema()`
  await expect.poll(() => own.query(counted)).toEqual([{ count: 500 }])
})

test('lists tokens in the order of their names, which is not that of a language', async () => {
  for (const name of ['b', 'B', 'a', 'Z', 'ä']) {
    await storage.tokens.insert({ name, scopes: [], createdAt: new Date(0) }, hashToken(name))
  }
  expect((await storage.tokens.list()).map(({ name }) => name)).toEqual(['B', 'Z', 'a', 'b', 'ä'])
})

describe('a pool of connections', () => {
  const open = (more: Partial<PostgresOptions> = {}, connectionsMax = 1) => {
    const pool = createPool(
      { hosts: [database.url], poolMode: 'session', timeoutMs: 10_000, ...more },
      connectionsMax,
    )
    onTestFinished(() => pool[Symbol.asyncDispose]())
    return pool
  }
  const ask = async (pool: ConnectionPool, text: string) => {
    const [result] = await pool.run([{ text }])
    return result?.rows[0]
  }
  const idOf = async (pool: ConnectionPool) => (await ask(pool, 'select pg_backend_pid() as id')).id
  const raise = (code: string) => `do $$ begin raise exception using errcode = '${code}'; end $$`

  test('replaces a connection that ended while nothing used it', async () => {
    const pool = open()
    const first = await idOf(pool)
    await database.query(`select pg_terminate_backend(${first})`)
    await expect.poll(() => idOf(pool).catch(() => first)).not.toBe(first)
  })

  test('keeps a connection that nothing uses for a minute', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const pool = open()
    const first = await idOf(pool)
    await vi.advanceTimersByTimeAsync(59_999)
    expect(await idOf(pool)).toBe(first)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(await idOf(pool)).not.toBe(first)
  })

  test('replaces a connection after a failure, and keeps it after a transaction that was rolled back', async () => {
    const pool = open()
    const first = await idOf(pool)
    const change = { text: 'select 1' }
    await expect(pool.run([change, { text: raise('40001') }, change])).rejects.toMatchObject({
      code: '40001',
    })
    expect(await idOf(pool)).toBe(first)
    await expect(pool.run([change, { text: raise('22000') }])).rejects.toMatchObject({ code: '22000' })
    expect(await idOf(pool)).not.toBe(first)
  })

  test('is of a host that accepts writes, with a name that operators know', async () => {
    const reader = `${database.url}?options=-c%20default_transaction_read_only%3Don`
    const pool = open({ hosts: [reader, database.url, 'postgres://127.0.0.1:1/a'] })
    const settings = ['transaction_read_only', 'application_name'].map(
      each => `current_setting('${each}') as ${each}`,
    )
    const expected = { transaction_read_only: 'off', application_name: 'plant-store' }
    expect(await ask(pool, `select ${settings}`)).toEqual(expected)
  })

  test('waits for the server to end a statement that takes too long', async () => {
    await expect(ask(open({ statementTimeoutMs: 200 }), 'select pg_sleep(10)')).rejects.toThrow(
      'due to statement timeout',
    )
  })

  test('asks hosts that have refused again, but not at once', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const pool = open({ hosts: ['postgres://127.0.0.1:1/a'] })
    const failure = () => idOf(pool).catch(error => error)
    const first = await failure()
    await vi.advanceTimersByTimeAsync(99)
    expect((await failure()) === first).toBe(true)
    await vi.advanceTimersByTimeAsync(1)
    expect((await failure()) === first).toBe(false)
  })

  test('is refused with the reason of each host, once', async () => {
    const reader = `${database.url}?options=-c%20default_transaction_read_only%3Don`
    const gone = ['postgres://127.0.0.1:1/a', 'postgres://127.0.0.1:1/b', 'postgres://127.0.0.1:2/a']
    const error = await idOf(open({ hosts: [...gone, reader] })).catch(error => error)
    const { host } = new URL(database.url)
    expect(error.message).toBe(
      `connect ECONNREFUSED 127.0.0.1:1; connect ECONNREFUSED 127.0.0.1:2; ${host} does not accept writes`,
    )
    expect(error.cause).toBeInstanceOf(AggregateError)
  })
})

import type { TestDatabase } from '@plant-store/harness/postgres'
import { createTestDatabase } from '@plant-store/harness/vitest'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { ConnectionPool } from '../src/postgres/connection-pool.ts'
import type { PostgresOptions } from '../src/types.ts'
import { attachStorage } from './notes.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())

/** A store on a server that is gone. */
const attachToNone = (onFailureChange?: (reason?: string) => void) => {
  const server = {
    hosts: ['postgres://127.0.0.1:1/a'],
    poolMode: 'session',
    timeoutMs: 10_000,
  } as const
  const shared = {
    kind: 'postgres',
    server,
    readConnectionsMax: 1,
    queueChangesMax: undefined,
  } as const
  return attachStorage(shared, { onFailureChange })
}

test('a server that is gone is an outage with its reason, and nothing looks for it once the store is closed', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const reasons: (string | undefined)[] = []
  const gone = await attachToNone(reason => reasons.push(reason))
  const reason = 'connect ECONNREFUSED 127.0.0.1:1'
  await expect(gone.notes.find(1n)).rejects.toMatchObject({
    code: 'store-unavailable',
    message: 'the store is unavailable',
    cause: { message: reason },
  })
  expect(reasons).toEqual([reason])
  // Past the pause before the next attempt to connect, and before the next check.
  await vi.advanceTimersByTimeAsync(500)
  expect(vi.getTimerCount()).toBe(1)
  await gone[Symbol.asyncDispose]()
  expect(vi.getTimerCount()).toBe(0)
})

test('refuses a read while ten thousand are pending, and no longer', async () => {
  await using gone = await attachToNone()
  const reads = Promise.allSettled(
    Array.from({ length: 10_000 }, () => gone.notes.find(1n)),
  )
  await expect(gone.notes.find(1n)).rejects.toMatchObject({ code: 'store-busy' })
  await reads
  await expect(gone.notes.find(1n)).rejects.toMatchObject({ code: 'store-unavailable' })
})

describe('a pool of connections', () => {
  const open = (more: Partial<PostgresOptions> = {}, connectionsMax = 1) => {
    const pool = new ConnectionPool(
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
  const idOf = async (pool: ConnectionPool) =>
    (await ask(pool, 'select pg_backend_pid() as id')).id
  const raise = (code: string) =>
    `do $$ begin raise exception using errcode = '${code}'; end $$`

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
    await expect(
      pool.run([change, { text: raise('40001') }, change]),
    ).rejects.toMatchObject({
      code: '40001',
    })
    expect(await idOf(pool)).toBe(first)
    await expect(pool.run([change, { text: raise('22000') }])).rejects.toMatchObject({
      code: '22000',
    })
    expect(await idOf(pool)).not.toBe(first)
  })

  test('shares what the server allows, and grows when it allows more', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    await using user = await database.createReader()
    await database.query(`alter role ${user.name} connection limit 1`)
    const pool = open({ hosts: [user.url] }, 3)
    const idsOfThree = async () => {
      const slow = 'select pg_backend_pid() as id, pg_sleep(0.05)'
      const rows = await Promise.all([1, 2, 3].map(() => ask(pool, slow)))
      return new Set(rows.map(({ id }) => id))
    }

    const limited = await idsOfThree()
    await database.query(`alter role ${user.name} connection limit 3`)
    const stillLimited = await idsOfThree()
    await vi.advanceTimersByTimeAsync(1_000)
    const grown = await idsOfThree()

    expect([limited.size, stillLimited.size, grown.size]).toEqual([1, 1, 3])
    await pool[Symbol.asyncDispose]()
  })

  test('is refused with the reason of the server that allows no connection', async () => {
    await using user = await database.createReader()
    await database.query(`alter role ${user.name} connection limit 0`)
    const pool = open({ hosts: [user.url], timeoutMs: 700 })

    await expect(idOf(pool)).rejects.toThrow(
      `too many connections for role "${user.name}"`,
    )
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
    await expect(
      ask(open({ statementTimeoutMs: 200 }), 'select pg_sleep(10)'),
    ).rejects.toThrow('due to statement timeout')
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
    const gone = [
      'postgres://127.0.0.1:1/a',
      'postgres://127.0.0.1:1/b',
      'postgres://127.0.0.1:2/a',
    ]
    const error = await idOf(open({ hosts: [...gone, reader] })).catch(error => error)
    const { host } = new URL(database.url)
    expect(error.message).toBe(
      `connect ECONNREFUSED 127.0.0.1:1; connect ECONNREFUSED 127.0.0.1:2; ${host} does not accept writes`,
    )
    expect(error.cause).toBeInstanceOf(AggregateError)
  })
})

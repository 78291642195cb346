import { createTestDatabase } from '@plant-store/harness/vitest'
import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { ConnectionPool } from '../src/postgres/connection-pool.ts'
import type { PostgresHandle, PostgresOptions } from '../src/types.ts'
import { attachStorage } from './notes.ts'

/** A server that refuses connections. */
const goneUrl = 'postgres://127.0.0.1:1/a'
const goneReason = 'connect ECONNREFUSED 127.0.0.1:1'

const database = await createTestDatabase()
/** The URL of the same server for sessions that only read. */
const readOnlyUrl = `${database.url}?options=-c%20default_transaction_read_only%3Don`
afterAll(() => database[Symbol.asyncDispose]())

/** Lets a test move the timers of the store. Those of the server go on. */
function useFakeTimers() {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
}

describe('a store on a server that is gone', () => {
  const attachToGone = () => {
    const server: PostgresOptions = {
      hosts: [goneUrl],
      poolMode: 'session',
      timeoutMs: 10_000,
    }
    const handle: PostgresHandle = {
      kind: 'postgres',
      server,
      readConnectionsMax: 1,
      queueChangesMax: undefined,
    }
    return attachStorage(handle)
  }

  test('does not look for the server once it is closed', async () => {
    useFakeTimers()
    const storage = await attachToGone()
    await expect(storage.notes.find(1n)).rejects.toThrow()
    // The pause before the next attempt is over, and the next check is not due.
    await vi.advanceTimersByTimeAsync(500)
    const timersBefore = vi.getTimerCount()

    await storage[Symbol.asyncDispose]()

    expect(timersBefore).toBe(1)
    expect(vi.getTimerCount()).toBe(0)
  })

  test('refuses a read while ten thousand are pending, and no longer', async () => {
    await using storage = await attachToGone()
    const read = () => storage.notes.find(1n)
    const pending = Array.from({ length: 10_000 }, read)
    const settled = Promise.allSettled(pending)

    await expect(read()).rejects.toMatchObject({ code: 'store-busy' })
    await settled

    await expect(read()).rejects.toMatchObject({ code: 'store-unavailable' })
  })
})

function openPool(
  options: Partial<PostgresOptions> = {},
  connectionsMax = 1,
): ConnectionPool {
  const pool = new ConnectionPool(
    { hosts: [database.url], poolMode: 'session', timeoutMs: 10_000, ...options },
    connectionsMax,
  )
  onTestFinished(() => pool[Symbol.asyncDispose]())
  return pool
}

/** Returns the row of a query. */
async function ask(pool: ConnectionPool, text: string): Promise<Record<string, unknown>> {
  const [result] = await pool.run([{ text }])
  return result?.rows[0]
}

/** Returns the number of the connection that a transaction got. */
async function connectionOf(pool: ConnectionPool): Promise<unknown> {
  const { id } = await ask(pool, 'select pg_backend_pid() as id')
  return id
}

describe('a connection', () => {
  const failWith = (code: string) => ({
    text: `do $$ begin raise exception using errcode = '${code}'; end $$`,
  })
  const change = { text: 'select 1' }

  test('is replaced if it ended while nothing used it', async () => {
    const pool = openPool()
    const first = await connectionOf(pool)

    await database.query(`select pg_terminate_backend(${first})`)

    const connection = () => connectionOf(pool).catch(() => first)
    await expect.poll(connection).not.toBe(first)
  })

  test('is closed if nothing uses it for a minute', async () => {
    useFakeTimers()
    const pool = openPool()
    const first = await connectionOf(pool)

    await vi.advanceTimersByTimeAsync(59_999)
    const second = await connectionOf(pool)
    await vi.advanceTimersByTimeAsync(60_000)
    const third = await connectionOf(pool)

    expect(second).toBe(first)
    expect(third).not.toBe(first)
  })

  test.each([
    { outcome: 'is kept', failure: 'a transaction that was rolled back', code: '40001' },
    { outcome: 'is replaced', failure: 'any other failure', code: '22000' },
  ])('$outcome after $failure', async ({ outcome, code }) => {
    const pool = openPool()
    const first = await connectionOf(pool)

    const transaction = pool.run([change, failWith(code), change])

    await expect(transaction).rejects.toMatchObject({ code })
    const isKept = (await connectionOf(pool)) === first
    expect(isKept).toBe(outcome === 'is kept')
  })

  test('that failed makes the next transaction ask which host accepts writes', async () => {
    const pool = openPool({}, 2)
    const turnReadOnly = {
      text: `select set_config('default_transaction_read_only', 'on', false), pg_sleep(0.05)`,
    }
    await Promise.all([pool.run([turnReadOnly]), pool.run([turnReadOnly])])
    const write = () => pool.run([{ text: 'create table never ()' }])

    await expect(write()).rejects.toMatchObject({ code: '25006' })
    await expect(write()).rejects.toThrow('does not accept writes')
  })

  test('waits until the server ends a late statement', async () => {
    const late = ask(openPool({ statementTimeoutMs: 200 }), 'select pg_sleep(10)')

    await expect(late).rejects.toThrow('due to statement timeout')
  })
})

/** Returns how many connections three transactions at once have used. */
async function countOfThree(pool: ConnectionPool): Promise<number> {
  const slow = 'select pg_backend_pid() as id, pg_sleep(0.05)'
  const asking = [ask(pool, slow), ask(pool, slow), ask(pool, slow)]
  const rows = await Promise.all(asking)
  return new Set(rows.map(({ id }) => id)).size
}

test('a pool shares the connections that it gets, and grows later', async () => {
  useFakeTimers()
  await using user = await database.createReader()
  const pool = openPool({ hosts: [user.url] }, 3)

  await database.query(`alter role ${user.name} connection limit 1`)
  const limited = await countOfThree(pool)
  await database.query(`alter role ${user.name} connection limit 3`)
  const soonAfter = await countOfThree(pool)
  await vi.advanceTimersByTimeAsync(1_000)
  const grown = await countOfThree(pool)

  expect([limited, soonAfter, grown]).toEqual([1, 1, 3])
  await pool[Symbol.asyncDispose]()
})

describe('a pool with several hosts', () => {
  test('connects to the one that accepts writes', async () => {
    const pool = openPool({ hosts: [readOnlyUrl, database.url, goneUrl] })

    const row = await ask(
      pool,
      `select current_setting('transaction_read_only') as value`,
    )

    expect(row).toEqual({ value: 'off' })
  })

  test('is refused with the reason of each host, once', async () => {
    const sameGoneUrl = 'postgres://127.0.0.1:1/b'
    const otherGoneUrl = 'postgres://127.0.0.1:2/a'
    const pool = openPool({ hosts: [goneUrl, sameGoneUrl, otherGoneUrl, readOnlyUrl] })

    const error: Error = await connectionOf(pool).then(fail, failure => failure)

    const { host } = new URL(database.url)
    expect(error.message).toBe(
      `${goneReason}; connect ECONNREFUSED 127.0.0.1:2; ${host} does not accept writes`,
    )
    expect(error.cause).toBeInstanceOf(AggregateError)
  })

  test('asks hosts that have refused again, but not at once', async () => {
    useFakeTimers()
    const pool = openPool({ hosts: [goneUrl] })
    const failure = () => connectionOf(pool).then(fail, error => error)

    const first = await failure()
    await vi.advanceTimersByTimeAsync(99)
    const soonAfter = await failure()
    await vi.advanceTimersByTimeAsync(1)
    const later = await failure()

    expect(soonAfter).toBe(first)
    expect(later).not.toBe(first)
  })
})

function fail(): never {
  throw new Error('it succeeded')
}

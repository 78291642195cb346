import { startProxy } from '@plant-store/harness/postgres-proxy'
import { createTestDatabase } from '@plant-store/harness/vitest'
import { afterAll, expect, test } from 'vitest'
import { note, openReader, openStorage } from './notes.ts'

const database = await createTestDatabase()
const { name } = database
const storage = await openStorage({ url: database.url })
afterAll(async () => {
  await storage[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})

test('a reader that pauses outlasts the limits of its database', async () => {
  await storage.notes.insert(note(1))
  for (const limit of ['idle_in_transaction_session_timeout', 'transaction_timeout']) {
    await database.query(`alter database ${name} set ${limit} = '200ms'`)
  }
  await using reader = await openReader(database.url)
  await database.query(`alter database ${name} reset all`)

  const paused = `select 1 from pg_stat_activity where datname = current_database()
    and state = 'idle in transaction' and clock_timestamp() - state_change > interval '300 ms'`
  await expect.poll(() => database.query(paused)).toHaveLength(1)

  expect(await reader.notes.find(1n)).toEqual(note(1))
})

test('a reader whose connection was ended says what the server said', async () => {
  await using reader = await openReader(database.url)

  await database.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and state = 'idle in transaction'`,
  )
  const reading = `select 1 from pg_stat_activity where datname = current_database() and state = 'idle in transaction'`
  await expect.poll(() => database.query(reading)).toEqual([])

  await expect(reader.counts()).rejects.toThrow(
    'the store cannot be read: terminating connection due to administrator command',
  )
  await storage.check()
})

test('a reader of a server that is gone says so, and leaves no connection', async () => {
  const others = `select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() order by pid`
  const before = await database.query(others)
  const proxy = await startProxy(database.url)
  {
    await using reader = await openReader(proxy.url)
    await proxy[Symbol.asyncDispose]()
    await expect(reader.counts()).rejects.toMatchObject({
      code: 'store-unavailable',
      message: expect.stringMatching(/^the store cannot be read: ./),
    })
  }
  await expect(openReader(proxy.url)).rejects.toThrow(
    /^the store .* cannot be opened: .*ECONNREFUSED/,
  )
  await expect.poll(() => database.query(others)).toEqual(before)
})

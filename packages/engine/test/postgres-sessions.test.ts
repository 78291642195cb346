import { storesOf } from '@plant-store/engine'
import { hasPgbouncer, startPgbouncer } from '@plant-store/harness/pgbouncer'
import { createTestDatabase, needs } from '@plant-store/harness/vitest'
import { expect, inject, test } from 'vitest'
import { entities, note, openStorage } from './notes.ts'
import { startProxy } from './proxy.ts'

const stores = storesOf(entities)

const sixtyNotes = Array.from({ length: 60 }, (_, id) => note(id))
const sixtyIds = sixtyNotes.map(({ id }) => id)

test.for([
  { setting: 'idle_in_transaction_session_timeout', since: 'state_change' },
  { setting: 'transaction_timeout', since: 'xact_start' },
])('a reader that pauses outlasts $setting', async ({ setting, since }) => {
  await using database = await createTestDatabase()
  await using storage = await openStorage({ url: database.url })
  await storage.notes.insert(note(1))
  const name = new URL(database.url).pathname.slice(1)
  await database.query(`alter database ${name} set ${setting} = '200ms'`)
  await using reader = await stores.openReader(database.url)

  const paused = `select 1 from pg_stat_activity where datname = current_database()
    and state = 'idle in transaction' and clock_timestamp() - ${since} > interval '300 ms'`
  await expect.poll(() => database.query(paused)).toHaveLength(1)
  const found = await reader.notes.find(note(1).id)

  expect(found).toEqual(note(1))
})

test('a reader whose connection was ended says what the server said', async () => {
  await using database = await createTestDatabase()
  await using storage = await openStorage({ url: database.url })
  await using reader = await stores.openReader(database.url)

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
  await using database = await createTestDatabase()
  await (await openStorage({ url: database.url }))[Symbol.asyncDispose]()
  const proxy = await startProxy(database.url)
  {
    await using reader = await stores.openReader(proxy.url)
    await proxy[Symbol.asyncDispose]()
    await expect(reader.counts()).rejects.toMatchObject({
      code: 'store-unavailable',
      message: expect.stringMatching(/^the store cannot be read: ./),
    })
  }
  await expect(stores.openReader(proxy.url)).rejects.toThrow(
    /^the store .* cannot be opened: .*ECONNREFUSED/,
  )
  const others = `select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`
  await expect.poll(() => database.query(others)).toEqual([])
})

test('reads share the connections that the server allows', async () => {
  await using database = await createTestDatabase()
  await using owner = await openStorage({ url: database.url })
  await owner.notes.insertAll(sixtyNotes)
  await using user = await database.createReader()
  await database.query(
    `grant insert, update, delete on all tables in schema public to ${user.name};
    alter role ${user.name} connection limit 2`,
  )

  expect(await readTogether(user.url)).toEqual(sixtyIds)
})

test(
  'reads share the connections that pgbouncer allows',
  needs('pgbouncer', hasPgbouncer),
  async () => {
    await using database = await createTestDatabase()
    await using owner = await openStorage({ url: database.url })
    await owner.notes.insertAll(sixtyNotes)
    const settings = { pool_mode: 'transaction', max_client_conn: '2' }
    await using pooler = await startPgbouncer(inject('postgresUrl'), settings)
    const path = `${new URL(database.url).pathname}?pool_mode=transaction`

    expect(await readTogether(new URL(path, pooler.url).href)).toEqual(sixtyIds)
  },
)

/**
 * Reads sixty notes at once, on a store that has one connection for changes and one for
 * reads.
 */
async function readTogether(url: string): Promise<readonly (bigint | undefined)[]> {
  await using storage = await openStorage({ url, readConnectionsMax: 4 })
  await storage.notes.save(note(0))
  const reads = sixtyNotes.map(({ id }) => storage.notes.find(id))
  const found = await Promise.all(reads)
  return found.map(stored => stored?.id)
}

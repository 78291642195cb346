import { hasPgbouncer, startPgbouncer } from '@plant-store/harness/pgbouncer'
import { createTestDatabase, needs } from '@plant-store/harness/vitest'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { ConnectionPool } from '../src/postgres/connection-pool.ts'
import { notesFrom, openStorage } from './notes.ts'

const database = await createTestDatabase()
beforeAll(async () => {
  // A client that relies on the server's own settings loses changes.
  await database.query(`alter database ${database.name} set synchronous_commit = off`)
})
afterAll(() => database[Symbol.asyncDispose]())

/**
 * Starts a pgbouncer with these settings, and resolves to the URL of the database
 * behind.
 */
async function startPooled(settings: Readonly<Record<string, string>>) {
  const all = { pool_mode: 'transaction', ...settings }
  const pooler = await startPgbouncer(inject('postgresUrl'), all)
  const parameters = 'pool_mode' in settings ? '' : '?pool_mode=transaction'
  const url = new URL(database.name + parameters, pooler.url).href
  return { url, [Symbol.asyncDispose]: () => pooler[Symbol.asyncDispose]() }
}

describe('behind pgbouncer by transaction', needs('pgbouncer', hasPgbouncer), () => {
  test('one connection serves all requests of two stores', async () => {
    await using pooled = await startPooled({ default_pool_size: '1' })
    // All of them wait for one connection, on a machine that may be busy.
    const options = { url: pooled.url, timeoutMs: 30_000 }
    await using first = await openStorage(options)
    await using second = await openStorage(options)

    const visits = notesFrom(0, 200).map(async (each, n) => {
      const { notes } = n % 2 === 0 ? first : second
      const inserted = await notes.insert(each)
      await notes.page(5)
      return [inserted, await notes.find(each.id)]
    })

    const expected = notesFrom(0, 200).map(each => [true, each])
    expect(await Promise.all(visits)).toEqual(expected)
  })

  test('a store with many reads needs two connections', async () => {
    await using pooled = await startPooled({ max_client_conn: '2' })
    await using storage = await openStorage({ url: pooled.url, readConnectionsMax: 4 })
    const stored = notesFrom(1_000, 60)
    await storage.notes.insertAll(stored)

    const reads = stored.map(({ id }) => storage.notes.find(id))

    expect(await Promise.all(reads)).toEqual(stored)
  })

  test('settings are those of the store, and stay its own', async () => {
    await using pooled = await startPooled({ default_pool_size: '1' })
    const hosts = [pooled.url]
    const schema = 'pg_catalog'
    const options = { hosts, poolMode: 'transaction', timeoutMs: 10_000, schema } as const
    await using pool = new ConnectionPool(options, 1)
    const setting = (name: string) => `current_setting('${name}')`
    const text = `select ${setting('row_security')} as security,
      ${setting('synchronous_commit')} as commit, ${setting('statement_timeout')} as timeout,
      ${setting('search_path')} as path`

    const results = await pool.run([{ text }, { text }])
    const transaction = await pool.begin()
    const { rows } = await transaction.query(text)
    await transaction[Symbol.asyncDispose]()
    const neighbour = new pg.Client({ connectionString: pooled.url })
    await neighbour.connect()
    const others = await neighbour.query(text)
    const prepared = await neighbour.query('select 1 from pg_prepared_statements')
    await neighbour.end()

    const path = expect.stringContaining(schema)
    const ours = { security: 'off', commit: 'on', timeout: '10s', path }
    expect(results.flatMap(result => result.rows)).toEqual([ours, ours])
    expect(rows).toMatchObject([{ security: 'off' }])
    expect(others.rows).toMatchObject([
      { security: 'on', commit: 'off', timeout: '0', path: '"$user", public' },
    ])
    expect(prepared.rows).toEqual([])
  })
})

test('pgbouncer by session with one connection or by statement is refused', {
  ...needs('pgbouncer', hasPgbouncer),
}, async () => {
  const bySession = { pool_mode: 'session', default_pool_size: '1' }
  await using pooled = await startPooled(bySession)
  await using storage = await openStorage({ url: pooled.url, timeoutMs: 1_000 })
  // Takes the only connection.
  expect(await storage.notes.find(-1n)).toBeUndefined()
  const unavailable = { code: 'store-unavailable' }
  await expect(storage.check(), 'by session').rejects.toMatchObject(unavailable)

  await using byStatement = await startPooled({ pool_mode: 'statement' })
  await using _ = await openStorage({ url: database.url })
  await expect(openStorage({ url: byStatement.url }), 'by statement').rejects.toThrow(
    'transaction blocks not allowed in statement pooling mode',
  )
})

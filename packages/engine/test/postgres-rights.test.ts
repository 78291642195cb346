import { storesOf } from '@plant-store/engine'
import { hasPgbouncer, startPgbouncer } from '@plant-store/harness/pgbouncer'
import {
  createDatabase,
  startPostgres,
  type TestDatabase,
} from '@plant-store/harness/postgres'
import { createTestDatabase, createTestSchema, needs } from '@plant-store/harness/vitest'
import { describe, expect, inject, test } from 'vitest'
import { ConnectionPool } from '../src/postgres/connection-pool.ts'
import { attachStorage, entities, note, notesFrom, openStorage } from './notes.ts'

const stores = storesOf(entities)
const tables = Object.values(entities).flatMap(({ tables }) => tables)

/** Fills a store, and lets a role that does not own its tables change them. */
async function createUser(database: TestDatabase) {
  {
    await using storage = await openStorage({ url: database.url })
    await storage.notes.insertAll(notesFrom(1, 3))
  }
  const user = await database.createReader()
  await database.query(`grant insert, update, delete on ${tables} to ${user.name}`)
  return user
}

/** Counts the notes of a store by its pages, as an export does. */
async function countByReader(url: string): Promise<number> {
  await using reader = await stores.openReader(url)
  let count = 0
  for await (const notes of reader.all('notes')) {
    count += notes.length
  }
  return count
}

describe('row-level security that hides rows', () => {
  const hidden =
    /query would be affected by row-level security policy for table "notes": its role must own the table, or have BYPASSRLS$/

  test('is refused by all that reads', async () => {
    await using database = await createTestSchema()
    await using user = await createUser(database)
    await database.query('alter table notes enable row level security')

    await expect(countByReader(user.url)).rejects.toThrow(hidden)
    await expect(stores.inspectStore(user.url)).rejects.toThrow(hidden)
    await expect(stores.planOpening(user.url)).rejects.toThrow(
      'its role lacks the right to see all rows of notes',
    )
    expect(await countByReader(database.url)).toBe(3)
  })

  test('is an outage of an open store, in each of its threads', async () => {
    await using database = await createTestSchema()
    await using user = await createUser(database)
    await using storage = await openStorage({ url: user.url })
    await using attached = await attachStorage(storage.share())
    await attached.notes.find(1n)

    await database.query('alter table notes enable row level security')
    const outage = {
      code: 'store-unavailable',
      cause: { message: expect.stringMatching(hidden) },
    }

    await expect(storage.notes.find(1n)).rejects.toMatchObject(outage)
    await expect(attached.notes.find(1n)).rejects.toMatchObject(outage)
    await expect(attached.notes.insert(note(9))).rejects.toMatchObject(outage)
    await expect(storage.check()).rejects.toMatchObject(outage)
  })

  test('of any table keeps a store from being ready', async () => {
    await using database = await createTestSchema()
    await using user = await createUser(database)
    await database.query('alter table gardens enable row level security')
    await using storage = await openStorage({ url: user.url })

    await expect(storage.check()).rejects.toMatchObject({
      cause: { message: 'its role lacks the right to see all rows of gardens' },
    })
  })

  test.each(['session', 'transaction'] as const)(
    'is refused behind a pooler by %s',
    needs('pgbouncer', hasPgbouncer),
    async poolMode => {
      const settings = { pool_mode: poolMode }
      await using pooler = await startPgbouncer(inject('postgresUrl'), settings)
      const hosts = [pooler.url]
      await using pool = new ConnectionPool({ hosts, poolMode, timeoutMs: 10_000 }, 1)
      const query = `select current_setting('row_security') as value`

      const results = await pool.run([{ text: query }, { text: query }])
      await using transaction = await pool.begin()
      const { rows } = await transaction.query(query)

      const values = [...results.flatMap(({ rows }) => rows), ...rows]
      expect(values.map(({ value }) => value)).toEqual(['off', 'off', 'off'])
    },
  )
})

describe('a host that only reads', () => {
  const readOnly = 'options=-c%20default_transaction_read_only%3Don'

  test('is read if none accepts writes, and does not start a server', async () => {
    await using database = await createTestDatabase()
    await using storage = await openStorage({ url: database.url })
    await storage.notes.insert(note(1))
    const url = `${database.url}?${readOnly}`

    expect(await countByReader(url)).toBe(1)
    expect((await stores.inspectStore(url)).counts.notes).toBe(1)
    await expect(openStorage({ url })).rejects.toThrow('does not accept writes')
    await expect(stores.planOpening(url)).rejects.toThrow('does not accept writes')
  })

  test('is read while it is a standby', async () => {
    await using server = await startPostgres()
    const { url } = await createDatabase(server.url)
    {
      await using storage = await openStorage({ url })
      await storage.notes.insert(note(1))
    }
    await server.stop()
    await server.start({ asStandby: true })

    expect(await countByReader(url)).toBe(1)
    expect((await stores.inspectStore(url)).counts.notes).toBe(1)
  })
})

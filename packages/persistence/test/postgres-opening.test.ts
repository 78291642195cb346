import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { type AccessError, createGate, hashToken } from '@plant-store/access'
import { startPostgres } from '@plant-store/harness/postgres'
import { createTestDatabase } from '@plant-store/harness/vitest'
import { openStorage } from '@plant-store/persistence'
import pg from 'pg'
import { describe, expect, inject, test } from 'vitest'
import type { Contest } from './contender.ts'
import { earlierStore } from './earlier-schemas.ts'

/** @throws Error when the process ends without one */
async function nextMessage(contender: ChildProcess): Promise<unknown> {
  const over = once(contender, 'close').then(([code, signal]) => {
    throw new Error(`a contender ended before it answered, with ${signal ?? `code ${code}`}`)
  })
  over.catch(() => {})
  const [message] = await Promise.race([once(contender, 'message'), over])
  return message
}

describe('several processes on one database', () => {
  test('ten that start together make the tables once, and each id has one winner', {
    timeout: 90_000,
  }, async () => {
    await using database = await createTestDatabase()
    const contenders = Array.from({ length: 10 }, () => fork(new URL('contender.ts', import.meta.url)))
    await Promise.all(contenders.map(nextMessage))
    const exits = contenders.map(contender => once(contender, 'exit'))

    const ids = Array.from({ length: 500 }, (_, id) => id)
    const answers = contenders.map(async (contender, number) => {
      // Each in an order of its own, so that they lock the same rows in different orders.
      const contest: Contest = { url: database.url, ids: number % 2 === 0 ? ids : ids.toReversed() }
      const answer = nextMessage(contender)
      contender.send(contest)
      const won = (await answer) as number[]
      return won.map(id => ({ id: `${id}`, name: `${contender.pid}` }))
    })
    const winners = (await Promise.all(answers)).flat().sort((a, b) => Number(a.id) - Number(b.id))
    expect(winners.map(({ id }) => Number(id))).toEqual(ids)
    expect(await database.query('select id, name from plants order by id')).toEqual(winners)
    expect(await database.query('select count(*)::int as count from schema_version')).toEqual([{ count: 1 }])
    expect(await Promise.all(exits)).toEqual(contenders.map(() => [0, null]))
  })

  test('of two that wait for their turn to migrate one does, and later ones do not wait', {
    timeout: 20_000,
  }, async () => {
    await using database = await createTestDatabase()
    const other = new pg.Client({ connectionString: database.url })
    await other.connect()
    // The same number in every release.
    await other.query('select pg_advisory_lock(4815162342)')
    const opening = [1, 2].map(() => openStorage({ url: database.url }))
    const waiting = `select 1 from pg_locks join pg_database on pg_database.oid = database
      where datname = current_database() and locktype = 'advisory' and not granted`
    await expect.poll(() => database.query(waiting)).toHaveLength(2)
    await other.query('select pg_advisory_unlock(4815162342)')
    await using first = await opening[0]
    await using second = await opening[1]
    await Promise.all([first?.check(), second?.check()])
    // Each migration writes the row at its next place.
    expect(await database.query('select ctid::text as place from schema_version')).toEqual([
      { place: '(0,2)' },
    ])
    await other.query('select pg_advisory_lock(4815162342)')
    await using third = await openStorage({ url: database.url })
    await third.check()
    await other.end()
  })

  test('a migration that the server rolls back is tried again', async () => {
    await using database = await createTestDatabase()
    const { pathname } = new URL(database.url)
    await database.query(earlierStore('postgres', 1))
    await database.query(`alter database ${pathname.slice(1)} set deadlock_timeout = '2s'`)
    const other = new pg.Client({ connectionString: database.url })
    await other.connect()
    await other.query("set deadlock_timeout = '60s'; begin; lock table access_tokens")
    const opening = openStorage({ url: database.url })
    opening.catch(() => {})
    const waiting = `select 1 from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and query like 'alter table "access_tokens"%'`
    await expect.poll(() => database.query(waiting), { interval: 10, timeout: 5_000 }).toHaveLength(1)
    // Each now has a lock that the other waits for. The server gives up the one whose timeout is shorter.
    await other.query('lock table schema_version')
    await other.query('rollback')
    await using storage = await opening
    await storage.check()
    await other.end()
  })

  test('a token revoked in one stops working in another', { timeout: 10_000 }, async () => {
    await using database = await createTestDatabase()
    await using here = await openStorage({ url: database.url })
    await using there = await openStorage({ url: database.url })
    const token = { name: 'gardener', scopes: ['plants:read'] as const, createdAt: new Date() }
    await here.tokens.insert(token, hashToken('secret'))
    const gate = createGate({ tokens: there.tokens })
    expect(await gate({ token: 'secret' }, 'plants:read')).toEqual(token)

    await here.tokens.remove('gardener')
    const admits = async () => {
      try {
        await gate({ token: 'secret' }, 'plants:read')
        return 'admitted'
      } catch (error) {
        return (error as AccessError).code
      }
    }
    await expect.poll(admits, { timeout: 5_000 }).toBe('invalid-token')
  })
})

describe('a database that is refused, and left as it was', () => {
  test('because it cannot keep all of Unicode', async () => {
    await using database = await createTestDatabase()
    const url = `${database.url}_ascii`
    await database.query(
      `create database ${new URL(url).pathname.slice(1)} template template0 encoding 'SQL_ASCII' locale_provider libc locale 'C'`,
    )
    await expect(openStorage({ url })).rejects.toThrow('its encoding must be UTF8, not SQL_ASCII')
    await database.query(`drop database ${new URL(url).pathname.slice(1)} with (force)`)
  })

  test('because it does not wait for the disk', async () => {
    await using server = await startPostgres({ fsync: 'off' })
    await expect(openStorage({ url: server.url })).rejects.toThrow('fsync is off')
  })

  test('because no server answers: in words that hold no password', async () => {
    const url = 'postgres://gardener:s3cret@127.0.0.1:1/plants?password=s3cret'
    const error = await openStorage({ url }).catch(error => error)
    expect(error.message).toContain('the store postgres://gardener@127.0.0.1:1/plants cannot be opened')
    expect(JSON.stringify(error, Object.getOwnPropertyNames(error))).not.toContain('s3cret')
  })
})

describe('a user', () => {
  test.each([
    ['without a password', '', /cannot be opened: it requires a password, and the URL has none$/],
    ['with an empty one', ':', /cannot be opened: it requires a password, and the URL has none$/],
    ['with a wrong one', ':wrong', /cannot be opened: password authentication failed for user "postgres"$/],
  ])('%s is told so in one line', async (_, password, message) => {
    const url = inject('postgresUrl').replace(/:\/\/[^@]+@/, `://postgres${password}@`)
    await expect(openStorage({ url })).rejects.toThrow(message)
  })

  test.each([
    ['insert', 'plants'],
    ['update', 'plants'],
    ['delete', 'plants'],
    ['update', 'access_tokens'],
  ])('who may not %s %s finds the store not ready', async (right, table) => {
    await using database = await createTestDatabase()
    await (await openStorage({ url: database.url }))[Symbol.asyncDispose]()
    const name = `gardener_${crypto.randomUUID().replaceAll('-', '')}`
    await database.query(`create role ${name} login password 'secret'`)
    await database.query(`grant select, insert, update, delete on all tables in schema public to ${name}`)
    const url = new URL(database.url)
    url.username = name
    try {
      await using storage = await openStorage({ url: url.href })
      await storage.check()
      await database.query(`revoke ${right} on ${table} from ${name}`)
      await expect(storage.check()).rejects.toMatchObject({
        code: 'store-unavailable',
        cause: { message: `permission denied for table ${table}` },
      })
    } finally {
      await database.query(`drop owned by ${name}; drop role ${name}`)
    }
  })
})

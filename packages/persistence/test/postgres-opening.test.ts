import type { Entity } from '@plant-store/engine'
import { createTestDatabase, createTestSchema } from '@plant-store/harness/vitest'
import { entities, openStorage } from '@plant-store/persistence'
import pg from 'pg'
import { describe, expect, inject, test } from 'vitest'
import { plant } from './store-folder.ts'

describe('several processes on one database', () => {
  test('of two that wait for their turn to migrate one does, and later ones do not wait', async () => {
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
    expect(
      await database.query('select ctid::text as place from schema_version'),
    ).toEqual([{ place: '(0,2)' }])
    await other.query('select pg_advisory_lock(4815162342)')
    await using third = await openStorage({ url: database.url })
    await third.check()
    await other.end()
  })

  test('a migration that the server rolls back is tried again', async () => {
    await using database = await createTestDatabase()
    // A sequence counts what is rolled back too.
    await database.query(`
      create sequence attempts;
      create function fail_once() returns event_trigger language plpgsql as $$ begin
        if nextval('attempts') = 1 then raise exception using errcode = 'deadlock_detected'; end if;
      end $$;
      create event trigger fail_once on ddl_command_start when tag in ('CREATE TABLE') execute function fail_once()`)
    await using storage = await openStorage({ url: database.url })
    await storage.check()
    const [attempts] = await database.query(
      'select last_value::int as count from attempts',
    )
    expect(attempts?.['count']).toBeGreaterThan(1)
  })
})

test('a database whose tables are all published gets a store, and keeps it', async () => {
  await using database = await createTestDatabase()
  await database.query('create publication everything for all tables')
  const withoutKey = `select relname from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace
    and not exists (select from pg_index where indrelid = pg_class.oid and indisprimary)`

  await using storage = await openStorage({ url: database.url })
  const inserted = await storage.plants.insert(plant(1))
  const removed = await storage.plants.remove(plant(1).id)
  await storage.check()

  expect([inserted, removed]).toEqual(['inserted', true])
  expect(await database.query(withoutKey)).toEqual([])
})

describe('a database that is refused, and left as it was', () => {
  test('because it cannot keep all of Unicode', async () => {
    await using database = await createTestDatabase()
    const url = `${database.url}_ascii`
    await database.query(
      `create database ${new URL(url).pathname.slice(1)} template template0 encoding 'SQL_ASCII' locale_provider libc locale 'C'`,
    )
    await expect(openStorage({ url })).rejects.toThrow(
      'its encoding must be UTF8, not SQL_ASCII',
    )
    await database.query(`drop database ${new URL(url).pathname.slice(1)} with (force)`)
  })

  test('because no server answers: in words that hold no password', async () => {
    const url = 'postgres://gardener:s3cret@127.0.0.1:1/plants?password=s3cret'
    const error = await openStorage({ url }).catch(error => error)
    expect(error.message).toContain(
      'the store postgres://gardener@127.0.0.1:1/plants cannot be opened',
    )
    expect(JSON.stringify(error, Object.getOwnPropertyNames(error))).not.toContain(
      's3cret',
    )
  })
})

describe('a user', () => {
  test.each([
    [
      'without a password',
      '',
      /cannot be opened: it requires a password, and the URL has none$/,
    ],
    [
      'with an empty one',
      ':',
      /cannot be opened: it requires a password, and the URL has none$/,
    ],
    [
      'with a wrong one',
      ':wrong',
      /cannot be opened: password authentication failed for user "postgres"$/,
    ],
  ])('%s is told so in one line', async (_, password, message) => {
    const url = inject('postgresUrl').replace(/:\/\/[^@]+@/, `://postgres${password}@`)
    await expect(openStorage({ url })).rejects.toThrow(message)
  })

  test.each([
    ['insert', 'plants', 'its role lacks the right to insert on plants'],
    ['delete', 'plants', 'permission denied for table plants'],
    [
      'insert, select',
      'access_tokens',
      'its role lacks the right to select on access_tokens, insert on access_tokens',
    ],
  ])('who may not %s %s finds the store not ready', async (right, table, message) => {
    await using database = await createTestSchema()
    await (await openStorage({ url: database.url }))[Symbol.asyncDispose]()
    await using user = await database.createReader()
    const tables = Object.values<Entity>(entities).flatMap(({ tables }) => tables)
    await database.query(`grant insert, update, delete on ${tables} to ${user.name}`)
    await using storage = await openStorage({ url: user.url })
    await storage.check()
    await database.query(`revoke ${right} on ${table} from ${user.name}`)
    await expect(storage.check()).rejects.toMatchObject({
      code: 'store-unavailable',
      cause: { message },
    })
  })
})

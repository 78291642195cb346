import { createTestDatabase, createTestSchema } from '@plant-store/harness/vitest'
import pg from 'pg'
import { describe, expect, inject, test } from 'vitest'
import { entities, openStorage } from './notes.ts'

/** The number of the lock of migrations, which is the same in every release. */
const migrationLock = 4_815_162_342

test('a start does not wait for a migration if the store is up to date', async () => {
  await using database = await createTestDatabase()
  await using first = await openStorage({ url: database.url })
  await using _blocker = await holdMigrationLock(database.url)

  await using second = await openStorage({ url: database.url })

  await Promise.all([first.check(), second.check()])
})

/** Keeps migrations from starting. */
async function holdMigrationLock(connectionString: string) {
  const client = new pg.Client({ connectionString })
  await client.connect()
  await client.query(`select pg_advisory_lock(${migrationLock})`)
  return { [Symbol.asyncDispose]: () => client.end() }
}

test('a migration that the server rolls back is tried again', async () => {
  await using database = await createTestDatabase()
  // A sequence also counts what is rolled back.
  await database.query(`
    create sequence attempts;
    create function fail_once() returns event_trigger language plpgsql as $$ begin
      if nextval('attempts') = 1 then
        raise exception using errcode = 'deadlock_detected';
      end if;
    end $$;
    create event trigger fail_once on ddl_command_start when tag in ('CREATE TABLE')
      execute function fail_once()`)

  await using storage = await openStorage({ url: database.url })
  await storage.check()

  const [attempts] = await database.query('select last_value::int as count from attempts')
  expect(attempts?.['count']).toBeGreaterThan(1)
})

describe('a start is refused', () => {
  test('if the database cannot keep all of Unicode', async () => {
    await using database = await createTestSchema()
    const name = `ascii_${crypto.randomUUID()}`
    const url = new URL(name, database.url).href
    await database.query(
      `create database "${name}" template template0
      encoding 'SQL_ASCII' locale_provider libc locale 'C'`,
    )

    await expect(openStorage({ url })).rejects.toThrow(
      'its encoding must be UTF8, not SQL_ASCII',
    )
    await database.query(`drop database "${name}" with (force)`)
  })

  test('if no server answers, in words that hold no password', async () => {
    const url = 'postgres://gardener:s3cret@127.0.0.1:1/notes?password=s3cret'

    const error = await openStorage({ url }).catch(error => error)

    expect(error.message).toContain(
      'the store postgres://gardener@127.0.0.1:1/notes cannot be opened',
    )
    const everything = JSON.stringify(error, Object.getOwnPropertyNames(error))
    expect(everything).not.toContain('s3cret')
  })

  const noPassword =
    /cannot be opened: it requires a password, and neither the URL nor PGPASSWORD has one$/
  const wrongPassword =
    /cannot be opened: password authentication failed for user "postgres"$/

  test.each([
    { why: 'without a password', password: '', message: noPassword },
    { why: 'with an empty password', password: ':', message: noPassword },
    { why: 'with a wrong password', password: ':wrong', message: wrongPassword },
  ])('$why, in one line', async ({ password, message }) => {
    const url = inject('postgresUrl').replace(/:\/\/[^@]+@/, `://postgres${password}@`)

    await expect(openStorage({ url })).rejects.toThrow(message)
  })
})

describe('a store is not ready', () => {
  test.each([
    {
      right: 'delete',
      table: 'notes',
      message: 'permission denied for table notes',
    },
    {
      right: 'insert, select',
      table: 'gardens',
      message: 'its role lacks the right to select on gardens, insert on gardens',
    },
  ])('if its role may not $right on $table', async ({ right, table, message }) => {
    await using database = await createTestSchema()
    await using owner = await openStorage({ url: database.url })
    await owner.check()
    await using user = await database.createReader()
    const tables = Object.values(entities).flatMap(({ tables }) => tables)
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

import { createTestDatabase } from '@plant-store/harness/vitest'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { inspectStore, note, openStorage, planOpening } from './notes.ts'

type TestRole = Awaited<ReturnType<typeof createRole>>

const database = await createTestDatabase()
afterAll(() => database[Symbol.asyncDispose]())

// A schema is removed in a tenth of the time of a database.
afterEach(async () => {
  await database.query(`
    alter database ${database.name} reset all;
    drop schema if exists public, second, "Odd, ""one""" cascade;
    create schema public;
    grant usage on schema public to public`)
})

/** A role that may create tables in `public`, as it was common before PostgreSQL 15. */
async function createRole() {
  const name = `app_${crypto.randomUUID().replaceAll('-', '')}`
  await database.query(`create role ${name} login password 'secret'`)
  await database.query(`grant create on schema public to ${name}`)
  const url = new URL(database.url)
  url.username = name
  const others = new URL(url)
  others.search = `?options=-c%20search_path%3D${name}`
  return {
    name,
    url: url.href,
    /** The URL of a store in the schema of the role's name. */
    ownUrl: others.href,
    [Symbol.asyncDispose]: async () => {
      await database.query(`drop owned by ${name}; drop role ${name}`)
    },
  }
}

/** Creates a store in `public` that has a note. */
async function createStore(url: string) {
  await using storage = await openStorage({ url })
  await storage.notes.insert(note(1))
}

async function tablesIn(schema: string): Promise<unknown[]> {
  return database.query(
    'select tablename::text as name from pg_tables where schemaname = $1',
    [schema],
  )
}

describe('a store in public, after the search path got a schema before it', () => {
  test('is found, and no second one is created', async () => {
    await using role = await createRole()
    await createStore(role.url)
    await database.query(`create schema authorization ${role.name}`)

    const report = await inspectStore(role.url)
    const plan = await planOpening(role.url)
    await using storage = await openStorage({ url: role.url })
    const found = await storage.notes.find(1n)

    expect(report.counts.notes).toBe(1)
    expect(plan.versionBefore).toBe(plan.schemaVersion)
    expect(found).toEqual(note(1))
    expect(await tablesIn(role.name)).toEqual([])
  })

  test('is kept when a server reconnects', async () => {
    await using storage = await openStorage({ url: database.url })
    await storage.notes.insert(note(1))
    await database.query('create schema second')
    await createStore(`${database.url}?options=-c%20search_path%3Dsecond`)

    await database.query(
      `alter database ${database.name} set search_path = second, public`,
    )
    await database.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid()`,
    )
    const insert = () => storage.notes.insert(note(2)).catch(() => 'unavailable')
    await expect.poll(insert).not.toBe('unavailable')

    const stored = await database.query('select id from public.notes order by id')
    expect(stored).toEqual([{ id: '1' }, { id: '2' }])
  })
})

/** Each prepares the database, and resolves to the reason for the role to be refused. */
const refusals: Readonly<Record<string, (role: TestRole) => Promise<string>>> = {
  async 'if two schemas of the search path have a store'({ name, url, ownUrl }) {
    await createStore(url)
    await database.query(`create schema authorization ${name}`)
    await createStore(ownUrl)
    return `its schemas ${name} and public both have a store: name one with ?options=-c%20search_path%3D${name}`
  },
  async 'if the role may not use the schema that has the store'({ name }) {
    await database.query('create schema "Odd, ""one"""')
    const path = encodeURIComponent('-c search_path="Odd,\\ ""one"""')
    await createStore(`${database.url}?options=${path}`)
    await database.query(`alter role ${name} set search_path = "Odd, ""one""", public`)
    return `the role ${name} may not use its schema Odd, "one"`
  },
  async 'if the role may use no schema of its search path'({ name }) {
    await database.query(`alter role ${name} set search_path = gone`)
    return `the role ${name} may use no schema of the search path gone`
  },
  async 'if the role may not create tables'({ name }) {
    await database.query(`revoke create on schema public from ${name}`)
    return `its role ${name} may not create tables in the schema public`
  },
  async 'if another role restored the dump, with each table it may not read'() {
    await createStore(database.url)
    const tables = ['schema_version', 'notes', 'gardens']
    const rights = tables.map(table => `select on ${table}`)
    return `its role lacks the right to ${rights.join(', ')}`
  },
}

test.each(Object.entries(refusals))('a start is refused %s', async (_, prepare) => {
  await using role = await createRole()
  const reason = await prepare(role)
  const tablesBefore = await tablesIn('public')

  await expect(openStorage({ url: role.url })).rejects.toThrow(reason)
  await expect(planOpening(role.url)).rejects.toThrow(reason)

  expect(await tablesIn('public')).toEqual(tablesBefore)
})

describe('a plan of an opening', () => {
  test('names the schema of a new store, and creates nothing', async () => {
    await using role = await createRole()

    const plan = await planOpening(role.url)

    const { host, pathname } = new URL(role.url)
    expect(plan).toEqual({
      store: `postgres://${role.name}@${host}${pathname} in the schema public`,
      versionBefore: undefined,
      schemaVersion: expect.any(Number),
    })
    expect(await tablesIn('public')).toEqual([])
  })

  test('names the stores that its search path leaves out', async () => {
    await createStore(database.url)
    await database.query('create schema second')

    const plan = await planOpening(`${database.url}?options=-c%20search_path%3Dsecond`)

    expect(plan.versionBefore).toBeUndefined()
    expect(plan.store).toMatch(
      / in the schema second, although the schema public has one$/,
    )
  })

  test('is refused if the role may read the store, and not change it', async () => {
    await createStore(database.url)
    await using reader = await database.createReader()
    await database.query(`grant insert, update, delete on notes to ${reader.name}`)

    await expect(planOpening(reader.url)).rejects.toThrow(
      /cannot be opened: its role lacks the right to insert on gardens, update on gardens, delete on gardens$/,
    )
  })
})

import { parsePlant } from '@plant-store/domain'
import type { TestDatabase } from '@plant-store/harness/postgres'
import { createTestDatabase } from '@plant-store/harness/vitest'
import {
  inspectStore,
  OutcomeUnknownError,
  openArchive,
  openSnapshot,
  openStorage,
} from '@plant-store/persistence'
import { plantArchiveContract, schemaVersion } from '@plant-store/persistence/testing'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startProxy } from './proxy.ts'
import { plant } from './store-folder.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
  await (await openArchive(database.url))[Symbol.asyncDispose]()
})
beforeEach(async () => {
  await database.query('truncate plants, access_tokens')
})
afterAll(() => database[Symbol.asyncDispose]())

const many = (count: number) =>
  Array.from({ length: count }, (_, n) => parsePlant({ id: BigInt(n), name: 'p' }))
const count = async () => {
  await using snapshot = await openSnapshot(database.url)
  return snapshot.count
}

describe('an archive beside a server, on PostgreSQL', () => {
  for (const { name, run } of plantArchiveContract) {
    test(name, async () => {
      await using storage = await openStorage({ url: database.url })
      await using archive = await openArchive(database.url)
      await run({ archive, plants: storage.plants })
    })
  }

  test('leaves neither a table nor a connection behind when everybody is done', async () => {
    {
      await using archive = await openArchive(database.url)
      await using _snapshot = await archive.snapshot()
      await using staged = await archive.stage('keep')
      await staged.add(many(10))
    }
    const others = `select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`
    await expect.poll(() => database.query(others)).toEqual([])
    expect(await database.query(`select relname from pg_class where relname = 'staged'`)).toEqual([])
  })

  test('keeps nothing of a call that fails, says why, and goes on with the next', async () => {
    await using archive = await openArchive(database.url)
    await archive.load(many(10), 'keep')
    await database.query(`alter table plants add constraint no_more check (id <> 15)`)
    const failure = {
      code: 'store-unavailable',
      message: expect.stringMatching(/^the store could not keep the plants: .*"no_more"$/),
    }
    try {
      await expect(archive.load(many(20), 'keep')).rejects.toMatchObject(failure)
      await expect(archive.load(many(20), 'replace')).rejects.toMatchObject(failure)
      await using staged = await archive.stage('keep')
      await staged.add(many(20).slice(10))
      await expect(staged.keep()).rejects.toMatchObject(failure)
      expect(await count()).toBe(10)
      expect(await archive.load(many(11), 'replace')).toEqual([...new Array(10).fill('replaced'), 'inserted'])
    } finally {
      await database.query('alter table plants drop constraint no_more')
    }
  })

  test('lets a server write while plants are staged', async () => {
    await using storage = await openStorage({ url: database.url })
    await using archive = await openArchive(database.url)
    await using staged = await archive.stage('keep')
    await staged.add(many(1_000))
    expect(await storage.plants.insert(plant(-1))).toBe('inserted')
    expect(await staged.keep()).toBe('kept')
  })

  test('is not told that an id is taken by a plant that is not stored in the end', async () => {
    await using archive = await openArchive(database.url)
    await using staged = await archive.stage('keep')
    await staged.add(many(10))
    await using other = await session()
    await other.query(`begin; insert into plants values (5, 'never there')`)
    const outcome = staged.keep()
    await waitsForLock()
    await other.query('rollback')
    expect(await outcome).toBe('kept')
  })

  test('tries again while ids are taken and free again, up to ten times', async () => {
    await using archive = await openArchive(database.url)
    await database.query(`
      create sequence tries;
      create function take() returns trigger language plpgsql as
        'begin if nextval(''tries'') <> 3 then raise unique_violation; end if; return null; end';
      create trigger take before insert on plants execute function take()`)
    try {
      {
        await using staged = await archive.stage('keep')
        await staged.add(many(2))
        expect(await staged.keep()).toBe('kept')
      }
      await using staged = await archive.stage('keep')
      await staged.add([plant(5)])
      await expect(staged.keep()).rejects.toThrow('insert and remove plants with these ids: try again')
      expect(await database.query('select last_value::int from tries')).toEqual([{ last_value: 3 + 10 }])
    } finally {
      await database.query('drop trigger take on plants; drop function take; drop sequence tries')
    }
    expect(await count()).toBe(2)
  })

  test('tries again what the server takes back', async () => {
    const archive = await openArchive(database.url)
    await archive.load([plant(1)], 'keep')
    await using other = await session()
    await other.query(`set deadlock_timeout = '1h'; begin; update plants set name = 'theirs' where id = 1`)
    const outcome = archive.load([plant(0, 'ours'), plant(1, 'ours'), plant(2, 'ours')], 'replace')
    await waitsForLock()
    await other.query(`insert into plants values (0, 'theirs')`)
    await other.query('commit')
    expect(await outcome).toEqual(['replaced', 'replaced', 'inserted'])
    expect(await database.query('select name from plants')).toEqual(new Array(3).fill({ name: 'ours' }))
    // Ours may meet theirs once more before they commit.
    const deadlocks = 'select 1 from pg_stat_database where datname = current_database() and deadlocks > 0'
    await archive[Symbol.asyncDispose]()
    await expect.poll(() => database.query(deadlocks)).toHaveLength(1)
  })

  test('says so when nobody can tell whether plants were kept', async () => {
    await using proxy = await startProxy(database.url)
    await using archive = await openArchive(proxy.url)
    await archive.load(many(10), 'keep')
    await using other = await session()
    await other.query('begin; lock table plants in share mode')
    const outcome = archive.load(many(20), 'keep').catch(error => error)
    await waitsForLock()
    proxy.cut()
    expect(await outcome).toMatchObject({ code: 'store-unavailable' })
    expect(await outcome).not.toBeInstanceOf(OutcomeUnknownError)
    await other.query('rollback')
    expect(await count()).toBe(10)

    await using again = await openArchive(proxy.url)
    // A commit that takes as long as we want it to.
    await database.query(`
      create function wait() returns trigger language plpgsql as
        'begin perform pg_advisory_xact_lock(1); return new; end';
      create constraint trigger wait after insert on plants deferrable initially deferred
        for each row execute function wait()`)
    try {
      await other.query('begin; select pg_advisory_xact_lock(1)')
      const unknown = again.load(many(20), 'keep').catch(error => error)
      await waitsForLock()
      proxy.swallowAnswers()
      await other.query('rollback')
      await expect.poll(count).toBe(20)
      proxy.cut()
      expect(await unknown).toBeInstanceOf(OutcomeUnknownError)
      expect(await unknown).toMatchObject({
        code: 'store-unavailable',
        message: expect.stringMatching(/^the store did not say whether it kept the plants: ./),
        cause: expect.any(Error),
      })
    } finally {
      await database.query('drop trigger wait on plants; drop function wait')
    }
  })
})

test('a load locks plants in the order of their ids, so that several cannot block each other', async () => {
  await using archive = await openArchive(database.url)
  await archive.load([plant(1), plant(2)], 'keep')
  await using other = await session()
  await other.query('begin; select 1 from plants where id = 1 for update')
  const outcome = archive.load([plant(2, 'ours'), plant(1, 'ours')], 'replace')
  await waitsForLock()
  const { rowCount } = await other.query('select 1 from plants where id = 2 for update nowait')
  await other.query('rollback')
  expect([rowCount, await outcome]).toEqual([1, ['replaced', 'replaced']])
})

test('a load that cannot be staged leaves no connection behind', async () => {
  await using archive = await openArchive(database.url)
  await database.query('alter table plants rename to elsewhere')
  try {
    await expect(archive.stage('keep')).rejects.toThrow(/could not stage the plants: .*"plants"/)
  } finally {
    await database.query('alter table elsewhere rename to plants')
  }
  const staging = `select pid from pg_stat_activity where datname = current_database() and query like '%staged%'
    and pid <> pg_backend_pid()`
  await expect.poll(() => database.query(staging)).toEqual([])
})

test('a staged load sees what others store meanwhile, whatever isolation the server has by default', async () => {
  const setDefault = (level: string) =>
    database.query(`alter database ${new URL(database.url).pathname.slice(1)} ${level}`)
  await setDefault(`set default_transaction_isolation = 'repeatable read'`)
  try {
    await using archive = await openArchive(database.url)
    await using staged = await archive.stage('keep')
    await staged.add(many(10))
    await database.query(`insert into plants values (5, 'meanwhile')`)
    expect(await staged.keep()).toEqual({ takenMeanwhile: 5n })
  } finally {
    await setDefault('reset default_transaction_isolation')
  }
})

test('an archive says why it cannot stage or be read', async () => {
  const proxy = await startProxy(database.url)
  await using archive = await openArchive(proxy.url)
  await using staged = await archive.stage('keep')
  await using snapshot = await archive.snapshot()
  await proxy[Symbol.asyncDispose]()
  await expect(snapshot.plants()[Symbol.asyncIterator]().next()).rejects.toMatchObject({
    code: 'store-unavailable',
    message: expect.stringMatching(/^the store cannot be read: ./),
  })
  await expect(staged.add(many(1))).rejects.toMatchObject({
    code: 'store-unavailable',
    message: expect.stringMatching(/^the store could not stage the plants: ./),
  })
  const failure = (failed: string) => ({
    code: 'store-unavailable',
    message: expect.stringMatching(`^the store ${failed}: .*ECONNREFUSED`),
  })
  await expect(archive.stage('keep')).rejects.toMatchObject(failure('could not stage the plants'))
  await expect(archive.snapshot()).rejects.toMatchObject(failure('cannot be read'))
})

describe('what is told of a database', () => {
  test('what is in it, all of one moment', async () => {
    await using storage = await openStorage({ url: database.url })
    await storage.plants.insert(plant(1))
    const { username, host, pathname } = new URL(database.url)
    expect(await inspectStore(database.url)).toEqual({
      store: `postgres://${username}@${host}${pathname}`,
      schemaVersion,
      plants: 1,
      tokens: 0,
    })
  })

  test('that it is empty, and it is left so', async () => {
    await using empty = await createTestDatabase()
    await expect(openSnapshot(empty.url)).rejects.toThrow(/cannot be opened: it is empty$/)
    await expect(inspectStore(empty.url)).rejects.toThrow(/cannot be opened: it is empty$/)
    expect(
      await empty.query(`select table_name from information_schema.tables where table_schema = 'public'`),
    ).toEqual([])
  })
})

async function session() {
  const client = new pg.Client({ connectionString: database.url })
  await client.connect()
  return {
    query: (sql: string) => client.query(sql),
    [Symbol.asyncDispose]: () => client.end(),
  }
}

async function waitsForLock(): Promise<void> {
  const waiting = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`
  await expect.poll(() => database.query(waiting)).toHaveLength(1)
}

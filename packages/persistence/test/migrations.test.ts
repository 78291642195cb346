import { readdirSync } from 'node:fs'
import {
  type Dialect,
  type Entity,
  type Migration,
  postgresDialect,
  sqliteDialect,
  storageName,
  storesOf,
} from '@plant-store/engine'
import { entities, inspectStore, openReader, openStorage } from '@plant-store/persistence'
import {
  DummyDriver,
  Kysely,
  PostgresQueryCompiler,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely'
import { assert, beforeEach, describe, expect, test } from 'vitest'
import { type DatabaseName, databases, usePlace } from './each-database.ts'
import { plant, schemaVersion, temporaryFolder } from './store-folder.ts'
import type { Subject } from './store-subjects.ts'

/** Returns the statements of all migrations on a database. */
async function statementsOf(dialect: Dialect): Promise<readonly string[]> {
  const isPostgres = dialect === postgresDialect
  const statements: string[] = []
  const db = new Kysely<unknown>({
    dialect: {
      createAdapter: () => new SqliteAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: db => new SqliteIntrospector(db),
      createQueryCompiler: () =>
        isPostgres ? new PostgresQueryCompiler() : new SqliteQueryCompiler(),
    },
    log({ query }) {
      statements.push(query.sql.trimEnd())
    },
  })
  for (let version = 1; version <= schemaVersion; version++) {
    statements.push('', `-- ${dialect.name}, version ${version}`)
    for (const { migrations } of Object.values<Entity>(entities)) {
      await migrations[version]?.(db, dialect)
    }
  }
  return statements
}

test('the statements of the migrations are as they were released', async () => {
  const onSqlite = await statementsOf(sqliteDialect)
  const onPostgres = await statementsOf(postgresDialect)

  // The default version of a plant is random in each store.
  const defaultVersion = /(?<="version" .* default )-?\d+/g
  const statements = [...onSqlite, ...onPostgres].join('\n').replace(defaultVersion, '0')
  await expect(statements).toMatchFileSnapshot('migrations.snapshot')
})

const nextVersion = schemaVersion + 1

/** Returns the stores of a later release, which begins with this migration. */
function nextRelease(migration: Migration) {
  const { plants } = entities
  const migrations = { ...plants.migrations, [nextVersion]: migration }
  return storesOf({ ...entities, plants: { ...plants, migrations } })
}

const addHeight: Migration = (db, { int64 }) =>
  db.schema.alterTable('plants').addColumn('height', int64).execute()
const next = nextRelease(addHeight)

const plants = [plant(1), plant(2)]

/** Fills a new store before each test of the block. */
function useFilledStore(name: DatabaseName): { readonly current: Subject } {
  const place = usePlace(name)
  beforeEach(async () => {
    await using storage = await openStorage({ url: place.current.url })
    await storage.plants.insertAll(plants)
  })
  return place
}

describe.each(databases)('on %s an empty database', name => {
  const place = usePlace(name)

  test('becomes a store of the newest version', async () => {
    await using storage = await openStorage({ url: place.current.url })

    expect(storage).toMatchObject({ versionBefore: undefined, schemaVersion })
  })
})

/** The tables of the first release, which the statements of this one do not fit. */
const firstEntities = Object.fromEntries(
  Object.entries<Entity>(entities).map(([name, entity]) => {
    const { 1: migration } = entity.migrations
    assert(migration, 'every entity is as old as the store')
    const compile = () => ({ statements: {}, port: () => ({}) })
    return [name, { ...entity, compile, migrations: { 1: migration } }]
  }),
)

describe.each(databases)('on %s a store of version 1', name => {
  const place = usePlace(name)

  test('is brought up to date, and keeps what it has', async () => {
    const { url } = place.current
    const tagged = plant(3, 'ö', 'ö1')
    assert(tagged.tag, 'the plant has a tag')
    {
      await using _ = await storesOf(firstEntities).openStorage({ url })
    }
    await place.current.run(
      "insert into plants (id, name, tag, version) values (3, 'ö', 'ö1', 7)",
      `insert into webhooks (id, url, allows_private, created_at, secret)
       values ('wh_1', 'https://a.example/', 0, 0, 'whsec_')`,
      `insert into outbox (webhook, version, id, name, tag, added_at)
       values ('wh_1', 7, 3, 'ö', 'ö1', 0)`,
    )

    await using storage = await openStorage({ url, migrates: true })
    const found = await storage.plants.pageCounted({
      limit: 10,
      countMax: 10,
      tag: tagged.tag,
    })
    const [webhook] = await storage.webhooks.list()
    assert(webhook, 'the store has its webhook')
    const deliveries = await storage.webhooks.outbox.deliveriesOf(webhook.id, 10)

    expect([storage.versionBefore, storage.schemaVersion]).toEqual([1, schemaVersion])
    expect(found).toEqual({ plants: [tagged], total: 1 })
    expect(webhook.events).toEqual(['added'])
    expect(deliveries).toMatchObject([{ event: 'added', plant: tagged }])
  })
})

describe('on PostgreSQL the order of no index', () => {
  const place = usePlace('PostgreSQL')

  test('depends on the language of the database', async () => {
    await (await openStorage({ url: place.current.url }))[Symbol.asyncDispose]()

    const collations = await place.current.ask(`
      select relname, collname from pg_index
      join pg_class on pg_class.oid = indexrelid
      cross join unnest(indcollation) as used
      join pg_collation on pg_collation.oid = used
      where relnamespace = current_schema()::regnamespace order by relname`)

    expect(collations).toEqual([
      ['access_tokens_hash_key', 'C'],
      ['access_tokens_pkey', 'C'],
      ['outbox_due', 'C'],
      ['outbox_retries', 'C'],
      ['plants_by_tag', 'C'],
      ['webhooks_pkey', 'C'],
    ])
  })
})

describe.each(databases)('on %s a newer release', name => {
  const place = useFilledStore(name)

  test('reads a store of this one, and leaves it as it is', async () => {
    const before = await place.current.fingerprint()

    const report = await next.inspectStore(place.current.url)

    const counts = { plants: 2 }
    expect(report).toMatchObject({
      store: storageName(place.current.url),
      schemaVersion,
      counts,
    })
    expect(await place.current.fingerprint()).toBe(before)
  })

  test('brings a store up to date, and keeps its plants', async () => {
    {
      await using first = await next.openStorage({
        url: place.current.url,
        migrates: true,
      })
      expect([first.versionBefore, first.schemaVersion]).toEqual([
        schemaVersion,
        nextVersion,
      ])
      expect(await first.plants.page({ limit: 10 })).toEqual(plants)
    }
    await using second = await next.openStorage({
      url: place.current.url,
      migrates: true,
    })

    expect([second.versionBefore, second.schemaVersion]).toEqual([
      nextVersion,
      nextVersion,
    ])
    expect(await second.plants.page({ limit: 10 })).toEqual(plants)
    expect(await place.current.ask('select height from plants')).toEqual([[null], [null]])
  })

  test('makes a store that this one refuses and leaves as it is', async () => {
    await (await next.openStorage({ url: place.current.url, migrates: true }))[
      Symbol.asyncDispose
    ]()
    const before = await place.current.fingerprint()

    const refusal = `has schema version ${nextVersion}, but this release knows only versions up to ${schemaVersion}: run a newer one`
    await expect(openStorage({ url: place.current.url })).rejects.toThrow(refusal)
    await expect(openReader(place.current.url)).rejects.toThrow(refusal)
    await expect(inspectStore(place.current.url)).rejects.toThrow(refusal)
    expect(await place.current.fingerprint()).toBe(before)
  })
})

describe.each(databases)('on %s', name => {
  const place = useFilledStore(name)

  test('a migration that fails changes nothing', async () => {
    const before = await place.current.fingerprint()
    const failing = nextRelease(async (db, dialect) => {
      await addHeight(db, dialect)
      throw new Error('no more')
    })

    const refused = failing.openStorage({
      url: place.current.url,
      migrates: true,
    })

    await expect(refused).rejects.toThrow(/^the store .* cannot be opened: no more$/)
    expect(await place.current.fingerprint()).toBe(before)
    const versions = await place.current.ask('select version from schema_version')
    expect(versions).toEqual([[schemaVersion]])
  })

  test.each([
    { of: 'an unknown version', change: 'update schema_version set version = 0' },
    { of: 'no version', change: 'delete from schema_version' },
  ])('a store of $of is refused and left as it is', async ({ change }) => {
    await place.current.run(change)
    const before = await place.current.fingerprint()

    const refusal = 'its table schema_version has no version: restore a backup'
    await expect(openStorage({ url: place.current.url })).rejects.toThrow(refusal)
    await expect(openReader(place.current.url)).rejects.toThrow(refusal)
    await expect(inspectStore(place.current.url)).rejects.toThrow(refusal)
    expect(await place.current.fingerprint()).toBe(before)
  })
})

describe.each(databases)('on %s a database of another program', name => {
  const place = usePlace(name)

  test.each([
    { what: 'a table', statements: ['create table notes (line text)'] },
    {
      what: 'a schema version of its own',
      statements: [
        'create table schema_version (version integer)',
        'create table songs (id integer)',
      ],
    },
  ])('with $what is refused and left as it is', async ({ statements }) => {
    const { url } = place.current
    await place.current.run(...statements)
    const before = await place.current.fingerprint()

    const refusal = /it contains tables of another program$/
    await expect(openStorage({ url })).rejects.toThrow(refusal)
    await expect(openReader(url)).rejects.toThrow(refusal)
    expect(await place.current.fingerprint()).toBe(before)
  })
})

test('reading a store that does not exist creates none', async () => {
  const folder = temporaryFolder()
  const url = `file:${folder}/store.db`

  const refusal = `there is no store at ${folder}/store.db`
  await expect(openReader(url)).rejects.toThrow(refusal)
  await expect(inspectStore(url)).rejects.toThrow(refusal)
  expect(readdirSync(folder)).toEqual([])
})

import {
  type Dialect,
  type Entity,
  postgresDialect,
  sqliteDialect,
  storesOf,
} from '@plant-store/engine'
import { entities, openStorage } from '@plant-store/persistence'
import {
  DummyDriver,
  Kysely,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely'
import { assert, expect, test } from 'vitest'
import { databases, makePlace, plant } from './places.ts'

const versions = Object.values<Entity>(entities).flatMap(({ migrations }) =>
  Object.keys(migrations).map(Number),
)
const schemaVersion = Math.max(...versions)

/** Returns the statements of all migrations on a database. */
async function statementsOf(dialect: Dialect): Promise<readonly string[]> {
  const statements: string[] = []
  const db = new Kysely<unknown>({
    dialect: {
      createAdapter: () => new SqliteAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: db => new SqliteIntrospector(db),
      createQueryCompiler: () => new SqliteQueryCompiler(),
    },
    log({ query }) {
      statements.push(query.sql.trim().replaceAll(/\s+/g, ' '))
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
  const defaultVersion = /(?<=version .* default )-?\d+/g
  const statements = [...onSqlite, ...onPostgres].join('\n').replace(defaultVersion, '0')
  await expect(statements).toMatchFileSnapshot('migrations.snapshot')
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

test.each(databases)(
  'on %s a store of version 1 is brought up to date and keeps its rows',
  async name => {
    await using place = await makePlace(name)
    const { url } = place
    const tagged = plant(3, 'ö', 'ö1')
    assert(tagged.tag, 'the plant has a tag')
    {
      await using _ = await storesOf(firstEntities).openStorage({ url })
    }
    const rows = [
      "insert into plants (id, name, tag, version) values (3, 'ö', 'ö1', 7)",
      `insert into webhooks (id, url, allows_private, created_at, secret)
       values ('wh_1', 'https://a.example/', 0, 0, 'whsec_')`,
      `insert into outbox (webhook, version, id, name, tag, added_at)
       values ('wh_1', 7, 3, 'ö', 'ö1', 0)`,
    ]
    for (const insert of rows) {
      await place.ask(insert)
    }

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
  },
)

test('on PostgreSQL no index is in the order of a language', async () => {
  await using place = await makePlace('PostgreSQL')
  await using _ = await openStorage({ url: place.url })

  const collations = await place.ask(`
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

import { readdirSync } from 'node:fs'
import * as engine from '@plant-store/engine'
import {
  type Dialect,
  type Entity,
  type Migration,
  postgresDialect,
  sqliteDialect,
  storageName,
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
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { plant, schemaVersion, temporaryFolder } from './store-folder.ts'
import { type Subject, subjects } from './store-subjects.ts'

const migrations = Object.values<Entity>(entities).map(each => each.migrations)

async function statementsOf(dialect: Dialect): Promise<readonly string[]> {
  const statements: string[] = []
  const db = new Kysely<unknown>({
    dialect: {
      createAdapter: () => new SqliteAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: db => new SqliteIntrospector(db),
      createQueryCompiler: () =>
        dialect === postgresDialect
          ? new PostgresQueryCompiler()
          : new SqliteQueryCompiler(),
    },
    log: ({ query }) => void statements.push(query.sql.trimEnd()),
  })
  for (let version = 1; version <= schemaVersion; version++) {
    statements.push('', `-- ${dialect.name}, version ${version}`)
    for (const each of migrations) {
      await each[version]?.(db, dialect)
    }
  }
  return statements
}

test('the statements of the migrations are as they were released', async () => {
  const statements = [
    ...(await statementsOf(sqliteDialect)),
    ...(await statementsOf(postgresDialect)),
  ]
  // Random in each store.
  const version = /(?<="version" .* default )-?\d+/g
  await expect(statements.join('\n').replace(version, '0')).toMatchFileSnapshot(
    'migrations.snapshot',
  )
})

const nextVersion = schemaVersion + 1
/** The stores of a later release, which begins with this migration. */
const storesWith = (migration: Migration) => {
  const { plants } = entities
  const grown = {
    ...plants,
    migrations: { ...plants.migrations, [nextVersion]: migration },
  }
  return { entities: { ...entities, plants: grown } }
}
const next = storesWith((db, { int64 }) =>
  db.schema.alterTable('plants').addColumn('height', int64).execute(),
)

describe.each(['SQLite', 'PostgreSQL'] as const)('on %s', name => {
  let store: Subject
  beforeEach(async () => {
    store = await subjects[name]()
    await using storage = await openStorage({ url: store.url })
    expect(storage).toMatchObject({ versionBefore: undefined, schemaVersion })
    await storage.plants.insertAll([plant(1), plant(2)])
  })
  afterEach(() => store[Symbol.asyncDispose]())

  const version = () => store.ask('select version from schema_version')

  test('a next version leaves a store as it is for a reader, brings it up to date once opened, and keeps its plants', async () => {
    const before = await store.fingerprint()
    expect(await engine.inspectStore(next, store.url)).toMatchObject({
      store: storageName(store.url),
      schemaVersion,
      counts: { plants: 2 },
    })
    expect(await store.fingerprint()).toBe(before)
    for (const versionBefore of [schemaVersion, nextVersion]) {
      await using storage = await engine.openStorage(next, { url: store.url })
      expect(storage).toMatchObject({ versionBefore, schemaVersion: nextVersion })
      expect(await storage.plants.page({ limit: 10 })).toEqual([plant(1), plant(2)])
    }
    expect(await store.ask('select height from plants')).toEqual([[null], [null]])
    const refusal = `has schema version ${nextVersion}, but this release knows only versions up to ${schemaVersion}: run a newer one`
    const migrated = await store.fingerprint()
    await expect(openStorage({ url: store.url })).rejects.toThrow(refusal)
    for (const read of [openReader, inspectStore]) {
      await expect(read(store.url)).rejects.toThrow(refusal)
    }
    expect(await store.fingerprint()).toBe(migrated)
  })

  test('a migration that fails changes nothing', async () => {
    const before = await store.fingerprint()
    const failing = storesWith(async (db, dialect) => {
      await db.schema.alterTable('plants').addColumn('height', dialect.int64).execute()
      throw new Error('no more')
    })
    const refused = engine.openStorage(failing, { url: store.url })
    await expect(refused).rejects.toThrow(/^the store .* cannot be opened: no more$/)
    expect(await store.fingerprint()).toBe(before)
    expect(await version()).toEqual([[schemaVersion]])
  })

  test.each([
    { of: 'an unknown version', change: 'update schema_version set version = 0' },
    { of: 'no version', change: 'delete from schema_version' },
  ])('a store of $of is refused and left untouched', async ({ change }) => {
    await store.run(change)
    const before = await store.fingerprint()

    const refusal = 'its table schema_version has no version: restore a backup'
    await expect(openStorage({ url: store.url })).rejects.toThrow(refusal)
    await expect(openReader(store.url)).rejects.toThrow(refusal)
    await expect(inspectStore(store.url)).rejects.toThrow(refusal)
    expect(await store.fingerprint()).toBe(before)
  })
})

test.each(
  (['SQLite', 'PostgreSQL'] as const).flatMap(name => [
    [name, 'create table notes (line text)'] as const,
    [
      name,
      'create table schema_version (version integer); create table songs (id integer)',
    ] as const,
  ]),
)(
  "on %s another program's tables are refused and left untouched: %s",
  async (name, tables) => {
    await using store = await subjects[name]()
    await store.run(tables)
    const before = await store.fingerprint()
    for (const open of [
      () => openStorage({ url: store.url }),
      () => openReader(store.url),
    ]) {
      await expect(open()).rejects.toThrow(/it contains tables of another program$/)
    }
    expect(await store.fingerprint()).toBe(before)
  },
)

test('reading a store that does not exist creates none', async () => {
  const folder = temporaryFolder()
  for (const read of [openReader, inspectStore]) {
    await expect(read(`file:${folder}/store.db`)).rejects.toThrow(
      `there is no store at ${folder}/store.db`,
    )
  }
  expect(readdirSync(folder)).toEqual([])
})

import { readdirSync } from 'node:fs'
import { hashToken } from '@plant-store/access'
import type { Plant, VersionedPlant } from '@plant-store/domain'
import type { Entity } from '@plant-store/engine'
import {
  backUpStore,
  entities,
  inspectStore,
  openReader,
  openStorage,
  restoreStore,
} from '@plant-store/persistence'
import { afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { earlierVersions, schemaVersion, statements } from './earlier-schemas.ts'
import { startStoreProcess } from './processes.ts'
import { plant, plantId, temporaryFolder } from './store-folder.ts'
import { type Subject, subjects } from './store-subjects.ts'

test('the statements of the migrations are as they were released', async () => {
  // Random in each migration.
  const version = /(?<="version" .* default )-?\d+/g
  const text = Object.entries(statements).flatMap(([database, compiled]) =>
    compiled.flatMap((each, n) => ['', `-- ${database}, version ${n + 1}`, ...each]),
  )
  await expect(text.join('\n').replace(version, '0')).toMatchFileSnapshot('migrations.snapshot')
})

describe.each(Object.entries(subjects))('on %s', (name, make) => {
  let store: Subject
  let current: unknown
  beforeAll(async () => {
    await using another = await make()
    await (await openStorage({ url: another.url }))[Symbol.asyncDispose]()
    current = await another.schema()
  })
  beforeEach(async () => {
    store = await make()
  })
  afterEach(() => store[Symbol.asyncDispose]())

  const version = () => store.ask('select version from schema_version')

  // A WAL makes no difference to the statements of a version.
  test.each(name === 'SQLite with a WAL' ? [1] : earlierVersions)(
    'a store of version %i stays at that for a reader, and an opening brings it up to date and keeps what is in it',
    async version => {
      const smallest = plant(-(2n ** 63n), 'first')
      const largest = plant(2n ** 63n - 1n, 'last', '')
      // Before version 5, such a row recorded that there had been a token.
      const former = `insert into access_tokens (name, hash, scopes, created_at) values ('', '', '', 0)`
      await store.run(store.earlier(version), ...(version < 5 ? [former] : []))
      const before = await store.fingerprint()
      {
        await using reader = await openReader(store.url)
        const found: Plant[] = []
        for await (const some of reader.all('plants')) found.push(...some)
        expect(found).toEqual([smallest, largest])
      }
      expect(await inspectStore(store.url)).toMatchObject({
        schemaVersion: version,
        counts: { plants: 2, tokens: version < 5 ? 2 : 1 },
      })
      expect(await store.fingerprint()).toBe(before)
      {
        await using storage = await openStorage({ url: store.url })
        expect((await storage.plants.find(smallest.id))?.plant).toEqual(smallest)
        expect((await storage.plants.find(largest.id))?.plant).toEqual(largest)
        expect(await storage.plants.page({ limit: 10 })).toEqual([smallest, largest])
        expect(await storage.plants.page({ limit: 10, tag: largest.name })).toEqual([])
        const old = { name: 'old', scopes: ['plants:read'], createdAt: new Date(1767323045678) }
        expect(await storage.tokens.list()).toEqual([old])
        await storage.tokens.markUsed(hashToken('secret'), new Date(1_800_000_000_000))
        expect(await storage.tokens.find(hashToken('secret'))).toEqual({
          ...old,
          lastUsedAt: new Date(1_800_000_000_000),
        })
        expect(await storage.plants.insert(plant(1))).toBe('inserted')
      }
      expect(await inspectStore(store.url)).toMatchObject({ schemaVersion, counts: { plants: 3, tokens: 1 } })
      expect(await store.schema()).toEqual(current)
    },
  )

  test('several processes may bring it up to date at once, and open it again', async () => {
    await store.run(store.earlier(1))
    const processes = await Promise.all([1, 2].map(() => startStoreProcess(store.url)))
    for (const each of processes) {
      expect(await each.check()).toEqual(['ready'])
      await each.close()
    }
    await using again = await openStorage({ url: store.url })
    expect((await again.plants.find(plantId(-(2n ** 63n))))?.plant).toEqual(plant(-(2n ** 63n), 'first'))
    expect(await version()).toEqual([[schemaVersion]])
  })

  test('an upgrade that fails changes nothing', async () => {
    await store.run(store.earlier(1))
    const before = await store.fingerprint()
    const all = Object.values<Entity>(entities).map(({ migrations }) => migrations)
    const migrations = all.find(each => schemaVersion in each) as Entity['migrations']
    const last = migrations[schemaVersion]
    const replaceLast = (by: unknown) => Object.assign(migrations, { [schemaVersion]: by })
    onTestFinished(() => void replaceLast(last))
    replaceLast(() => Promise.reject(new Error('no more')))
    await expect(openStorage({ url: store.url })).rejects.toThrow(/^the store .* cannot be opened: no more$/)
    expect(await store.fingerprint()).toBe(before)
    expect(await version()).toEqual([[1]])
  })

  test('a store of a newer version is refused and left untouched', async () => {
    const newer = schemaVersion + 1
    await store.run(store.earlier(1), `update schema_version set version = ${newer}`)
    const before = await store.fingerprint()
    const refusal = `has schema version ${newer}, but this release knows only versions up to ${schemaVersion}: run a newer one`
    await expect(openStorage({ url: store.url })).rejects.toThrow(refusal)
    await expect(openReader(store.url)).rejects.toThrow(refusal)
    await expect(inspectStore(store.url)).rejects.toThrow(refusal)
    expect(await store.fingerprint()).toBe(before)
  })

  test.each([
    ['of its own', 'create table notes (line text)'],
    [
      'that are named like ours',
      'create table schema_version (version integer); create table plants (id integer)',
    ],
  ])("another program's database, with tables %s, is refused and left untouched", async (_, tables) => {
    await store.run(tables)
    const before = await store.fingerprint()
    const refusal = /it contains tables of another program$/
    await expect(openStorage({ url: store.url })).rejects.toThrow(refusal)
    await expect(openReader(store.url)).rejects.toThrow(refusal)
    expect(await store.fingerprint()).toBe(before)
  })

  test('its plants get versions that they had in no other migration', async () => {
    const id = plantId(-(2n ** 63n))
    const seen = new Set<string>()
    for (let n = 0; n < 2; n++) {
      await using restored = await make()
      await restored.run(restored.earlier(2))
      await using storage = await openStorage({ url: restored.url })
      const { plant, version } = (await storage.plants.find(id)) as VersionedPlant
      seen.add(version)
      expect(await storage.plants.removeIf(plantId(2n ** 63n - 1n), version)).toBe(true)
      seen.add((await storage.plants.saveIf(plant, version)) as string)
      expect(await storage.plants.saveIf(plant, version)).toBeUndefined()
    }
    expect(seen.size).toBe(4)
  })
})

test('a backup of version 2 stays at that, and what it restores gets versions that its plants did not have', async () => {
  await using store = await subjects.SQLite()
  await store.run(store.earlier(2))
  const file = store.url.slice('file:'.length)
  const backup = `${file}.backup`
  expect(await backUpStore(store.url, backup)).toMatchObject({ schemaVersion: 2, counts: { plants: 2 } })
  const id = plantId(2n ** 63n - 1n)
  const versions: unknown[] = []
  for (let n = 0; n < 2; n++) {
    {
      await using storage = await openStorage({ url: store.url })
      versions.push((await storage.plants.find(id))?.version)
    }
    expect(await restoreStore(store.url, backup, { force: true })).toMatchObject({ schemaVersion: 2 })
  }
  expect(new Set(versions).size).toBe(2)
})

test('reading a store that does not exist creates none', async () => {
  const folder = temporaryFolder()
  for (const read of [openReader, inspectStore])
    await expect(read(`file:${folder}/store.db`)).rejects.toThrow(`there is no store at ${folder}/store.db`)
  expect(readdirSync(folder)).toEqual([])
})

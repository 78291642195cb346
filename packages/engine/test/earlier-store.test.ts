import { type Entity, type Migration, storageName, storesOf } from '@plant-store/engine'
import { createTestDatabase } from '@plant-store/harness/vitest'
import { describe, expect, test, vi } from 'vitest'
import { createTable, entityOf, type Note, type Notes, note } from './notes.ts'
import { changeBySql, databases, itemsOf, makePlace, newFile } from './places.ts'

const notes = entityOf('notes')
/** An entity that a later release adds. */
const gardens: Entity<Notes, Note> = {
  ...entityOf('gardens'),
  migrations: { 2: createTable('gardens') },
}
/** The same, if exports and salvages leave it out and a restore names its rows. */
const unreadGardens: Entity<Notes, Note> = {
  ...gardens,
  rows: null,
  restoredBy: { key: 'id', name: 'text' },
}
const first = storesOf({ notes })
const second = storesOf({ notes, gardens })
const unread = storesOf({ notes, gardens: unreadGardens })

function newUrl(): string {
  return `file:${newFile()}`
}

function fileOf(url: string): string {
  return url.slice('file:'.length)
}

/** Creates a store of the first release with notes of these ids. */
async function createFirst(url: string, ...ids: readonly number[]) {
  await using storage = await first.openStorage({ url })
  await storage.notes.insertAll(ids.map(id => note(id)))
}

/** Migrates a store to the second release, and adds gardens. */
async function insertGardens(url: string, ...gardens: readonly Note[]) {
  await using storage = await second.openStorage({ url, migrates: true })
  await storage.gardens.insertAll(gardens)
}

/** Makes a store of the first release with one note. */
async function makeFirst(name: (typeof databases)[number]) {
  const place = await makePlace(name)
  await createFirst(place.url, 1)
  return place
}

describe.each(databases)('a store on %s from before an entity', name => {
  const needed =
    /^the store .*: it has schema version 1, and this release needs 2: stop the servers, then start the new one, which migrates it$/

  test('is read as it is, and migrated once its opener migrates', async () => {
    const place = await makeFirst(name)
    const { url } = place
    const before = await place.fingerprint()
    {
      const report = await second.inspectStore(url)
      await using reader = await second.openReader(url)

      const counts = { notes: 1, gardens: 0 }
      const store = storageName(url)
      expect(report).toMatchObject({ store, schemaVersion: 1, counts })
      expect(await itemsOf(reader.all('notes'))).toEqual([note(1)])
      expect(await itemsOf(reader.all('gardens'))).toEqual([])
      expect(await reader.counts()).toEqual(counts)
      expect(await reader.notes.find(1n)).toEqual(note(1))
      await expect(reader.gardens.find(1n)).rejects.toThrow(needed)
    }
    await expect(second.openStorage({ url })).rejects.toThrow(needed)
    const plan = await second.planOpening(url)
    expect(plan).toMatchObject({ versionBefore: 1, schemaVersion: 2 })
    expect(await place.fingerprint()).toBe(before)

    for (const versionBefore of [1, 2]) {
      await using storage = await second.openStorage({ url, migrates: true })
      const from = `from version ${versionBefore}`
      expect(storage, from).toMatchObject({ versionBefore, schemaVersion: 2 })
      expect(await storage.notes.page(10), from).toEqual([note(1)])
      expect(await storage.gardens.insert(note(1)), from).toBe(versionBefore === 1)
    }
  })

  test('is reported to an older server that has it open, once', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    const { url } = await makeFirst(name)
    const onNewerVersion = vi.fn()
    await using _storage = await first.openStorage({ url, onNewerVersion })
    await vi.advanceTimersByTimeAsync(10_000)
    expect(onNewerVersion).not.toHaveBeenCalled()
    await insertGardens(url)

    vi.advanceTimersByTime(10_000)
    await vi.waitFor(() => expect(onNewerVersion).toHaveBeenCalled(), 30_000)
    vi.advanceTimersByTime(20_000)

    expect(onNewerVersion.mock.calls).toEqual([[2]])
  })
})

describe.each(databases)('a store on %s', name => {
  test('is unchanged by a migration that fails', async () => {
    const place = await makeFirst(name)
    const before = await place.fingerprint()
    const failing: Migration = async (db, dialect) => {
      await createTable('gardens')(db, dialect)
      throw new Error('no more')
    }
    const third = storesOf({ notes, gardens: { ...gardens, migrations: { 2: failing } } })

    const refused = third.openStorage({ url: place.url, migrates: true })

    await expect(refused).rejects.toThrow(/^the store .* cannot be opened: no more$/)
    expect(await place.fingerprint()).toBe(before)
  })

  test('is refused with another version or program, and left as it is', async () => {
    const noVersion = 'its table schema_version has no version: restore a backup'
    const ofAnother = 'it contains tables of another program'
    const place = await makeFirst(name)
    const { url } = place

    for (const [change, refusal] of [
      [
        'update schema_version set version = 2',
        'has schema version 2, but this release knows only versions up to 1: run a newer one',
      ],
      ['update schema_version set version = 0', noVersion],
      ['delete from schema_version', noVersion],
      ['alter table notes rename to songs', ofAnother],
      ['alter table songs rename to notes; drop table schema_version', ofAnother],
    ] as const) {
      await place.run(change)
      const before = await place.fingerprint()

      await expect(first.openStorage({ url }), change).rejects.toThrow(refusal)
      await expect(first.openReader(url), change).rejects.toThrow(refusal)

      expect(await place.fingerprint(), change).toBe(before)
    }
  })
})

test('a store on PostgreSQL whose tables are all published is migrated', async () => {
  await using database = await createTestDatabase()
  await database.query('create publication everything for all tables')
  await createFirst(database.url, 1)

  await insertGardens(database.url, note(1))
  await using storage = await second.openStorage({ url: database.url })

  // Without a primary key, a published row cannot be removed.
  expect(await storage.notes.remove(1n)).toBe(true)
  expect(await storage.gardens.remove(1n)).toBe(true)
})

test('a migration is refused if the role does not own the tables', async () => {
  await using database = await createTestDatabase()
  await createFirst(database.url, 1)
  await using user = await database.createReader()
  await database.query(
    `grant insert, update, delete on all tables in schema public to ${user.name};
    grant create on schema public to ${user.name}`,
  )
  const reason = `a migration changes notes, schema_version, which its role ${user.name} does not own`

  const migrating = second.openStorage({ url: user.url, migrates: true })

  await expect(migrating).rejects.toThrow(reason)
  await expect(second.planOpening(user.url)).rejects.toThrow(reason)
  const report = await second.inspectStore(database.url)
  expect(report.schemaVersion).toBe(1)
})

test('a reader on SQLite has no pages, which only a storage bounds', async () => {
  const url = newUrl()
  await createFirst(url, 1)
  await using reader = await first.openReader(url)

  await expect(async () => reader.notes.page(1)).rejects.toThrow('it is only read')
})

describe('a salvage', () => {
  test('reads nothing of an entity that the store does not have', async () => {
    const url = newUrl()
    await createFirst(url, 1, 2)
    await using salvage = await second.openSalvage(url)

    const ofGardens = salvage.of('gardens')
    expect(ofGardens.count).toBe(0)
    expect(await itemsOf(ofGardens.all())).toEqual([])
    expect(ofGardens.unread()).toBe(0)
    const notes = await itemsOf(salvage.of('notes').all())
    expect(notes).toEqual([note(1), note(2)])
    expect(salvage.counts).toEqual({ notes: 2, gardens: 0 })
  })

  test('counts what it leaves out', async () => {
    const url = newUrl()
    await createFirst(url, 1, 2)
    await insertGardens(url, note(1), note(2), note(3))
    await using salvage = await unread.openSalvage(url)

    expect(salvage.counts).toEqual({ notes: 2, gardens: 3 })
    expect(() => salvage.of('gardens')).toThrow('gardens cannot be salvaged')
  })

  test('counts a table without an index once it has read it, again too', async () => {
    const url = newUrl()
    await insertGardens(url, note(1), note(2))
    await using salvage = await second.openSalvage(url)
    const ofGardens = salvage.of('gardens')

    const once = await itemsOf(ofGardens.all())
    const again = await itemsOf(ofGardens.all())

    expect([once, again]).toEqual(Array(2).fill([note(1), note(2)]))
    expect(ofGardens.count).toBeUndefined()
    expect(ofGardens.unread()).toBe(0)
  })

  test('refuses a store of a newer version, whichever entity has grown', async () => {
    const url = newUrl()
    await insertGardens(url)
    changeBySql(fileOf(url), 'alter table gardens add column area integer')

    await expect(second.openSalvage(url)).rejects.toThrow(
      /^nothing in the store .* can be read: its gardens have columns that this version does not know$/,
    )
  })
})

test('a restore from or to a version before an entity names its rows', async () => {
  const before = newUrl()
  const after = newUrl()
  await createFirst(before, 1)
  await insertGardens(after, note(1, 'rose'))
  const backupBefore = `${fileOf(before)}.backup`
  const backupAfter = `${fileOf(after)}.backup`
  await unread.backUpStore(before, backupBefore)
  await unread.backUpStore(after, backupAfter)

  const back = await unread.restoreStore(before, backupAfter, { force: true })
  const lost = await unread.restoreStore(after, backupBefore, { force: true })

  expect(back.changed).toEqual({ gardens: { again: ['rose'], lost: [] } })
  expect(lost.changed).toEqual({ gardens: { again: [], lost: ['rose'] } })
})

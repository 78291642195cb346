import { type Entity, storesOf } from '@plant-store/engine'
import { createTestSchema, temporaryFolder } from '@plant-store/harness/vitest'
import Database from 'better-sqlite3'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { createTable, entityOf, type Note, type Notes, note } from './notes.ts'

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
  return `file:${temporaryFolder()}/notes.db`
}

function fileOf(url: string): string {
  return url.slice('file:'.length)
}

async function itemsOf<Item>(pages: AsyncIterable<readonly Item[]>) {
  const items: Item[] = []
  for await (const page of pages) {
    items.push(...page)
  }
  return items
}

/** Creates a store with notes of these ids. */
async function createStore(
  stores: Pick<typeof first, 'openStorage'>,
  url: string,
  ...ids: readonly number[]
): Promise<void> {
  await using storage = await stores.openStorage({ url })
  for (const id of ids) {
    await storage.notes.insert(note(id))
  }
}

async function insertGardens(url: string, ...gardens: readonly Note[]): Promise<void> {
  await using storage = await second.openStorage({ url, migrates: true })
  for (const garden of gardens) {
    await storage.gardens.insert(garden)
  }
}

describe.each(['SQLite', 'PostgreSQL'])('a store on %s from before an entity', name => {
  async function openPlace() {
    const schema = await createTestSchema()
    const url = name === 'SQLite' ? newUrl() : schema.url
    await createStore(first, url, 1)
    return { url, [Symbol.asyncDispose]: () => schema[Symbol.asyncDispose]() }
  }

  test('is inspected as it is', async () => {
    await using place = await openPlace()

    const report = await second.inspectStore(place.url)

    const counts = { notes: 1, gardens: 0 }
    expect(report).toMatchObject({ schemaVersion: 1, counts })
  })

  test('has none of it for a reader', async () => {
    await using place = await openPlace()
    await using reader = await second.openReader(place.url)

    expect(await itemsOf(reader.all('notes'))).toEqual([note(1)])
    expect(await itemsOf(reader.all('gardens'))).toEqual([])
    expect(await reader.counts()).toEqual({ notes: 1, gardens: 0 })
  })

  test('is refused unless its opener migrates, and left as it is', async () => {
    await using place = await openPlace()

    const refused = second.openStorage({ url: place.url })

    await expect(refused).rejects.toThrow(
      /: it has schema version 1, and this release needs 2: stop the servers, then start the new one, which migrates it$/,
    )
    const report = await second.inspectStore(place.url)
    expect(report.schemaVersion).toBe(1)
  })

  test('is reported to an older server that has it open, once', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    onTestFinished(() => void vi.useRealTimers())
    await using place = await openPlace()
    const onNewerVersion = vi.fn()
    const older = { url: place.url, onNewerVersion }
    await using _storage = await first.openStorage(older)
    await vi.advanceTimersByTimeAsync(10_000)
    expect(onNewerVersion).not.toHaveBeenCalled()
    await (await second.openStorage({ url: place.url, migrates: true }))[
      Symbol.asyncDispose
    ]()

    vi.advanceTimersByTime(10_000)
    await vi.waitFor(() => expect(onNewerVersion).toHaveBeenCalled(), 30_000)
    vi.advanceTimersByTime(20_000)

    expect(onNewerVersion.mock.calls).toEqual([[2]])
  })

  test('gets its table when it is migrated', async () => {
    await using place = await openPlace()
    {
      await using storage = await second.openStorage({ url: place.url, migrates: true })
      expect([storage.versionBefore, storage.schemaVersion]).toEqual([1, 2])
      expect(await storage.notes.insert(note(1))).toBe(false)
      expect(await storage.gardens.insert(note(1))).toBe(true)
    }

    const report = await second.inspectStore(place.url)
    const counts = { notes: 1, gardens: 1 }
    expect(report).toMatchObject({ schemaVersion: 2, counts })
  })
})

test('a reader on SQLite has no pages, which only a storage bounds', async () => {
  const url = newUrl()
  await createStore(first, url, 1)
  await using reader = await first.openReader(url)

  await expect(async () => reader.notes.page(1)).rejects.toThrow('it is only read')
})

describe('a salvage', () => {
  test('reads nothing of an entity that the store does not have', async () => {
    const url = newUrl()
    await createStore(first, url, 1, 2)
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
    await createStore(first, url, 1, 2)
    await insertGardens(url, note(1), note(2), note(3))
    await using salvage = await unread.openSalvage(url)

    expect(salvage.counts).toEqual({ notes: 2, gardens: 3 })
    expect(() => salvage.of('gardens')).toThrow('gardens cannot be salvaged')
  })

  test('reads items as often as it is asked', async () => {
    const url = newUrl()
    await insertGardens(url, note(1), note(2), note(3))
    await using salvage = await second.openSalvage(url)

    const once = await itemsOf(salvage.of('gardens').all())
    const again = await itemsOf(salvage.of('gardens').all())

    expect(once).toEqual([note(1), note(2), note(3)])
    expect(again).toEqual(once)
  })

  test('counts a table without an index once it has read all of it', async () => {
    const url = newUrl()
    await insertGardens(url, note(1), note(2))
    await using salvage = await second.openSalvage(url)
    const ofGardens = salvage.of('gardens')
    await itemsOf(ofGardens.all())

    expect(ofGardens.count).toBeUndefined()
    expect(ofGardens.unread()).toBe(0)
  })

  test('refuses a store of a newer version, whichever entity has grown', async () => {
    const url = newUrl()
    await createStore(second, url, 1)
    const database = new Database(fileOf(url))
    database.exec('alter table gardens add column area integer')
    database.close()

    await expect(second.openSalvage(url)).rejects.toThrow(
      /^nothing in the store .* can be read: its gardens have columns that this version does not know$/,
    )
  })
})

describe('a restore', () => {
  async function createBoth() {
    const before = newUrl()
    const after = newUrl()
    await createStore(first, before, 1)
    await insertGardens(after, note(1, 'rose'))
    return { before, after }
  }

  test('of a backup from before an entity names its rows as lost', async () => {
    const { before, after } = await createBoth()

    const { changed } = await unread.restoreStore(after, fileOf(before), { force: true })

    expect(changed).toEqual({ gardens: { again: [], lost: ['rose'] } })
  })

  test('into a store from before an entity names its rows as back', async () => {
    const { before, after } = await createBoth()
    const backup = `${fileOf(after)}.backup`
    await unread.backUpStore(after, backup)

    const { changed } = await unread.restoreStore(before, backup, { force: true })

    expect(changed).toEqual({ gardens: { again: ['rose'], lost: [] } })
  })
})

import {
  backUpStore,
  type Entity,
  inspectStore,
  openReader,
  openSalvage,
  openStorage,
  restoreStore,
} from '@plant-store/engine'
import { createTestSchema, temporaryFolder } from '@plant-store/harness/vitest'
import Database from 'better-sqlite3'
import { describe, expect, test } from 'vitest'
import { createTable, entityOf, type Note, type Notes, note } from './notes.ts'

const notes = entityOf('notes')
/** As entities that a later release adds. */
const gardens: Entity<Notes, Note> = {
  ...entityOf('gardens'),
  migrations: { 2: createTable('gardens') },
}
const first = { entities: { notes } }
const second = { entities: { notes, gardens } }
const unread = {
  entities: {
    notes,
    gardens: { ...gardens, rows: null, restoredBy: { key: 'id', name: 'text' } },
  },
}

async function itemsOf<Item>(pages: AsyncIterable<readonly Item[]>): Promise<Item[]> {
  const items: Item[] = []
  for await (const page of pages) {
    items.push(...page)
  }
  return items
}

describe.each(['SQLite', 'PostgreSQL'])('a store on %s from before an entity', name => {
  test('has none of it for those that only read it, and gets its table when it is opened', async () => {
    await using schema = await createTestSchema()
    const url = name === 'SQLite' ? `file:${temporaryFolder()}/notes.db` : schema.url
    {
      await using storage = await openStorage(first, { url })
      await storage.notes.insert(note(1))
    }
    expect(await inspectStore(second, url)).toMatchObject({
      schemaVersion: 1,
      counts: { notes: 1, gardens: 0 },
    })
    {
      await using reader = await openReader(second, url)
      expect([
        await itemsOf(reader.all('notes')),
        await itemsOf(reader.all('gardens')),
      ]).toEqual([[note(1)], []])
      expect(await reader.counts()).toEqual({ notes: 1, gardens: 0 })
      // On SQLite it would be longer than the size that it is given.
      const page = async () => reader.notes.page(1)
      if (name === 'SQLite') {
        await expect(page).rejects.toThrow('it is only read')
      } else {
        expect(await page()).toEqual([note(1)])
      }
    }
    await using storage = await openStorage(second, { url })
    expect([storage.versionBefore, storage.schemaVersion]).toEqual([1, 2])
    expect(
      await Promise.all([storage.notes.insert(note(1)), storage.gardens.insert(note(1))]),
    ).toEqual([false, true])
    expect(await inspectStore(second, url)).toMatchObject({
      schemaVersion: 2,
      counts: { notes: 1, gardens: 1 },
    })
  })
})

async function storeOf(store: typeof first, ...ids: number[]): Promise<string> {
  const url = `file:${temporaryFolder()}/notes.db`
  await using storage = await openStorage(store, { url })
  for (const id of ids) {
    await storage.notes.insert(note(id))
  }
  return url
}

test('a salvage reads nothing of an entity that the store does not have, and counts what it leaves out', async () => {
  const url = await storeOf(first, 1, 2)
  {
    await using salvage = await openSalvage(second, url)
    const ofGardens = salvage.of('gardens')
    expect([ofGardens.count, await itemsOf(ofGardens.all()), ofGardens.unread()]).toEqual(
      [0, [], 0],
    )
    expect(await itemsOf(salvage.of('notes').all())).toEqual([note(1), note(2)])
    expect(salvage.counts).toEqual({ notes: 2, gardens: 0 })
  }
  {
    await using storage = await openStorage(second, { url })
    for (const id of [1, 2, 3]) {
      await storage.gardens.insert(note(id))
    }
  }
  await using leaving = await openSalvage(unread, url)
  expect(leaving.counts).toEqual({ notes: 2, gardens: 3 })
  expect(() => leaving.of('gardens')).toThrow('gardens cannot be salvaged')
  await using salvage = await openSalvage(second, url)
  // As often as it is asked.
  for (const _ of [1, 2]) {
    expect(await itemsOf(salvage.of('gardens').all())).toEqual(
      [1, 2, 3].map(id => note(id)),
    )
    // Without an index nothing says how many there were, and nothing was wrong.
    expect([salvage.of('gardens').count, salvage.of('gardens').unread()]).toEqual([
      undefined,
      0,
    ])
  }
})

test('a salvage refuses a store of a newer version when it is opened, whichever entity has grown', async () => {
  const url = await storeOf(second as unknown as typeof first, 1)
  const database = new Database(url.slice('file:'.length))
  database.exec('alter table gardens add column area integer')
  database.close()
  await expect(openSalvage(second, url)).rejects.toThrow(
    /^nothing in the store .* can be read: its gardens have columns that this version does not know$/,
  )
})

test('a restore of a backup from before an entity names all its rows as lost, and into such a store as back again', async () => {
  const [before, after] = [
    await storeOf(first, 1),
    await storeOf(unread as unknown as typeof first, 1),
  ]
  {
    await using storage = await openStorage(unread, { url: after })
    await storage.gardens.insert(note(1, 'rose'))
  }
  const fileOf = (url: string) => url.slice('file:'.length)
  await backUpStore(unread, after, `${fileOf(after)}.backup`)
  const lost = await restoreStore(unread, after, fileOf(before), { force: true })
  expect(lost.changed).toEqual({ gardens: { again: [], lost: ['rose'] } })
  const again = await restoreStore(unread, before, `${fileOf(after)}.backup`, {
    force: true,
  })
  expect(again.changed).toEqual({ gardens: { again: ['rose'], lost: [] } })
})

import type { TestDatabase } from '@plant-store/harness/postgres'
import { createTestSchema } from '@plant-store/harness/vitest'
import { describe, expect, test } from 'vitest'
import {
  attachStorage,
  entities,
  inspectStore,
  note,
  notesFrom,
  openReader,
  openStorage,
  planOpening,
} from './notes.ts'
import { itemsOf } from './places.ts'

const tables = Object.values(entities).flatMap(({ tables }) => tables)

/** Fills a store, and lets a role that does not own its tables change them. */
async function createUser(database: TestDatabase) {
  {
    await using storage = await openStorage({ url: database.url })
    await storage.notes.insertAll(notesFrom(1, 3))
  }
  const user = await database.createReader()
  await database.query(`grant insert, update, delete on ${tables} to ${user.name}`)
  return user
}

/** Counts the notes of a store by its pages, as an export does. */
async function countByReader(url: string): Promise<number> {
  await using reader = await openReader(url)
  const notes = await itemsOf(reader.all('notes'))
  return notes.length
}

describe('row-level security that hides rows', () => {
  const hidden =
    /query would be affected by row-level security policy for table "notes": its role must own the table, or have BYPASSRLS$/

  test('is refused by all that reads', async () => {
    await using database = await createTestSchema()
    await using user = await createUser(database)
    await database.query('alter table notes enable row level security')

    await expect(countByReader(user.url)).rejects.toThrow(hidden)
    await expect(inspectStore(user.url)).rejects.toThrow(hidden)
    await expect(planOpening(user.url)).rejects.toThrow(
      'its role lacks the right to see all rows of notes',
    )
    expect(await countByReader(database.url)).toBe(3)
  })

  test('is an outage of an open store, in each of its threads', async () => {
    await using database = await createTestSchema()
    await using user = await createUser(database)
    await using storage = await openStorage({ url: user.url })
    await using attached = await attachStorage(storage.share())
    await attached.notes.find(1n)
    await database.query('alter table gardens enable row level security')
    await expect(storage.check()).rejects.toMatchObject({
      cause: { message: 'its role lacks the right to see all rows of gardens' },
    })

    await database.query('alter table notes enable row level security')
    const outage = {
      code: 'store-unavailable',
      cause: { message: expect.stringMatching(hidden) },
    }

    await expect(storage.notes.find(1n)).rejects.toMatchObject(outage)
    await expect(attached.notes.find(1n)).rejects.toMatchObject(outage)
    await expect(attached.notes.insert(note(9))).rejects.toMatchObject(outage)
    await expect(storage.check()).rejects.toMatchObject(outage)
  })
})

test('a host that only reads is read, and does not start a server', async () => {
  await using database = await createTestSchema()
  await using storage = await openStorage({ url: database.url })
  await storage.notes.insert(note(1))
  const url = `${database.url}%20-c%20default_transaction_read_only%3Don`

  expect(await countByReader(url)).toBe(1)
  expect((await inspectStore(url)).counts.notes).toBe(1)
  await expect(openStorage({ url })).rejects.toThrow('does not accept writes')
  await expect(planOpening(url)).rejects.toThrow('does not accept writes')
})

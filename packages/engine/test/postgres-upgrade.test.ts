import { type Entity, storesOf } from '@plant-store/engine'
import { createTestDatabase } from '@plant-store/harness/vitest'
import { expect, test } from 'vitest'
import { createTable, entityOf, type Note, type Notes, note } from './notes.ts'

const notes = entityOf('notes')
/** An entity that a later release adds. */
const gardens: Entity<Notes, Note> = {
  ...entityOf('gardens'),
  migrations: { 2: createTable('gardens') },
}
const first = storesOf({ notes })
const second = storesOf({ notes, gardens })

async function createFirst(url: string): Promise<void> {
  await using storage = await first.openStorage({ url })
  await storage.notes.insert(note(1))
}

test('a store whose tables are all published is upgraded', async () => {
  await using database = await createTestDatabase()
  await createFirst(database.url)
  await database.query('create publication everything for all tables')

  await using storage = await second.openStorage({ url: database.url, migrates: true })
  const kept = await storage.notes.find(1n)

  expect([storage.versionBefore, storage.schemaVersion]).toEqual([1, 2])
  expect(kept).toEqual(note(1))
})

test('an upgrade is refused if the role does not own the tables', async () => {
  await using database = await createTestDatabase()
  await createFirst(database.url)
  await using user = await database.createReader()
  await database.query(
    `grant insert, update, delete on all tables in schema public to ${user.name};
    grant create on schema public to ${user.name}`,
  )
  const reason = `a migration changes notes, schema_version, which its role ${user.name} does not own`

  await expect(second.planOpening(user.url)).rejects.toThrow(reason)
  await expect(second.openStorage({ url: user.url, migrates: true })).rejects.toThrow(
    reason,
  )
  const report = await second.inspectStore(database.url)
  expect(report.schemaVersion).toBe(1)
})

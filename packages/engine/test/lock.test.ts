import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { temporaryFolder } from '@plant-store/harness/vitest'
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { note, openStorage } from './notes.ts'

test.concurrent('a change waits for a lock that is soon released', async ({ onTestFinished }) => {
  const file = join(temporaryFolder(onTestFinished), 'notes.db')
  await using storage = await openStorage({ url: `file:${file}`, lockTimeoutMs: 30_000 })
  await storage.notes.insert(note(1))
  const other = new Database(file)
  other.exec('begin immediate')
  const change = storage.notes.insert(note(2))
  other.exec("insert into notes (id, text) values (3, 'by the other')")
  // The writer is a thread of its own, so this one can give the lock back while that one waits.
  setTimeout(() => other.exec('commit'), 500)
  expect(await change).toBe(true)
  expect((await storage.notes.page(10)).map(({ id }) => id)).toEqual([1n, 2n, 3n])
  other.close()
})

test.concurrent('a store without a WAL is opened once another program, which is quicker, has changed it', async ({
  onTestFinished,
}) => {
  const file = join(temporaryFolder(onTestFinished), 'notes.db')
  await (await openStorage({ url: `file:${file}` }))[Symbol.asyncDispose]()
  const other = new Database(file)

  const opening = openStorage({ url: `file:${file}` })
  // Its schema has been looked at, and its writer, a thread that is only starting, has not asked for the WAL.
  await nextTurn()
  await nextTurn()
  other.exec('begin immediate')
  setTimeout(() => other.close(), 500)
  await using storage = await opening
  expect(await storage.notes.insert(note(1))).toBe(true)
})

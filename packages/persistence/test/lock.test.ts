import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { openStorage } from '@plant-store/persistence'
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { plant, temporaryFolder } from './store-folder.ts'

test.concurrent('a change waits for a lock that is soon released', async ({ onTestFinished }) => {
  const file = join(temporaryFolder(onTestFinished), 'plants.db')
  await using storage = await openStorage({ url: `file:${file}`, lockTimeoutMs: 30_000 })
  await storage.plants.insert(plant(1))
  const other = new Database(file)
  other.exec('begin immediate')
  const change = storage.plants.insert(plant(2))
  other.exec("insert into plants (id, name) values (3, 'by the other')")
  // The writer is a thread of its own, so this one can give the lock back while that one waits.
  setTimeout(() => other.exec('commit'), 500)
  expect(await change).toBe('inserted')
  expect((await storage.plants.page({ limit: 10 })).map(({ id }) => id)).toEqual([1n, 2n, 3n])
  other.close()
})

test.concurrent('a store without a WAL is opened once another program, which is quicker, has changed it', async ({
  onTestFinished,
}) => {
  const file = join(temporaryFolder(onTestFinished), 'plants.db')
  await (await openStorage({ url: `file:${file}` }))[Symbol.asyncDispose]()
  const other = new Database(file)

  const opening = openStorage({ url: `file:${file}` })
  // Its schema has been looked at, and its writer, a thread that is only starting, has not asked for the WAL.
  await nextTurn()
  await nextTurn()
  other.exec('begin immediate')
  setTimeout(() => other.close(), 500)
  await using storage = await opening
  expect(await storage.plants.insert(plant(1))).toBe('inserted')
})

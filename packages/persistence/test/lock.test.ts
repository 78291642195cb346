import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { openStorage } from '@plant-store/persistence'
import Database from 'better-sqlite3'
import { expect, type TestContext, test } from 'vitest'
import { plant, plantId, temporaryFolder } from './store-folder.ts'

async function setUp({ onTestFinished }: TestContext, lockTimeoutMs: number) {
  const file = join(temporaryFolder(onTestFinished), 'plants.db')
  const storage = await openStorage({ url: `file:${file}`, lockTimeoutMs })
  await storage.plants.insert(plant(1))
  const other = new Database(file)
  other.exec('begin immediate')
  return { storage, other }
}

test.concurrent('a store that another program has locked for long is unavailable for changes, readable, and fine again after', async context => {
  const { storage, other } = await setUp(context, 100)
  const changes = [
    storage.plants.insert(plant(2)),
    storage.plants.save(plant(1, 'changed')),
    storage.plants.remove(plantId(1)),
  ]
  expect((await storage.plants.find(plantId(1)))?.plant).toEqual(plant(1))
  const settled = await Promise.allSettled(changes)
  for (const each of settled)
    expect(each).toMatchObject({ status: 'rejected', reason: { code: 'store-unavailable' } })
  other.exec('rollback')
  other.close()

  await storage.check()
  expect(await storage.plants.page({ limit: 10 })).toEqual([plant(1)])
  expect(await storage.plants.insert(plant(2))).toBe('inserted')
  await storage[Symbol.asyncDispose]()
})

test.concurrent('a change waits for a lock that is soon released', async context => {
  const { storage, other } = await setUp(context, 30_000)
  const change = storage.plants.insert(plant(2))
  other.exec("insert into plants (id, name) values (3, 'by the other')")
  // The writer is a thread of its own, so this one can give the lock back while that one waits.
  setTimeout(() => other.exec('commit'), 500)
  expect(await change).toBe('inserted')
  expect((await storage.plants.page({ limit: 10 })).map(({ id }) => id)).toEqual([1n, 2n, 3n])
  other.close()
  await storage[Symbol.asyncDispose]()
})

test.concurrent('a store without a log is opened once another program, which is quicker, has changed it', async ({
  onTestFinished,
}) => {
  const file = join(temporaryFolder(onTestFinished), 'plants.db')
  await (await openStorage({ url: `file:${file}` }))[Symbol.asyncDispose]()
  const other = new Database(file)

  const opening = openStorage({ url: `file:${file}` })
  // Its schema has been looked at, and its writer, a thread that is only starting, has not asked for the log.
  await nextTurn()
  await nextTurn()
  other.exec('begin immediate')
  setTimeout(() => other.close(), 500)
  await using storage = await opening
  expect(await storage.plants.insert(plant(1))).toBe('inserted')
})

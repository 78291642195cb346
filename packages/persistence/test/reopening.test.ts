import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { inspectStore, openReader, openStorage } from '@plant-store/persistence'
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { plant, temporaryFolder } from './store-folder.ts'

test('opens a store several times at the same moment, also one that is not there yet', async () => {
  const url = `file:${join(temporaryFolder(), 'plants.db')}`
  const opened = await Promise.allSettled(Array.from({ length: 4 }, () => openStorage({ url })))
  await using stack = new AsyncDisposableStack()
  const stores = opened.filter(each => each.status === 'fulfilled').map(({ value }) => stack.use(value))
  expect(opened.filter(({ status }) => status === 'rejected')).toEqual([])
  await Promise.all(stores.map((store, n) => store.plants.insert(plant(n))))
  for (const store of stores) expect((await store.plants.page({ limit: 10 })).length).toBe(stores.length)
})

/** What the header says of the journal, when it is read and when it is written: 2 is a WAL. */
const journalOf = (file: string) => [...readFileSync(file).subarray(18, 20)]

test('a closed store has no WAL, so that it can be read where nothing can be written', async () => {
  const file = join(temporaryFolder(), 'plants.db')
  for (const opening of [1, 2]) {
    await using storage = await openStorage({ url: `file:${file}` })
    expect(journalOf(file)).toEqual([2, 2])
    await storage.plants.insert(plant(opening))
    await (await openReader(`file:${file}`))[Symbol.asyncDispose]()
    expect(readdirSync(dirname(file)).sort()).toEqual(['plants.db', 'plants.db-shm', 'plants.db-wal'])
    await storage[Symbol.asyncDispose]()
    expect(journalOf(file)).toEqual([1, 1])
    expect(readdirSync(dirname(file))).toEqual(['plants.db'])
  }
  expect((await inspectStore(`file:${file}`)).counts.plants).toBe(2)
})

test('a store that another process has open keeps its WAL', async () => {
  const file = join(temporaryFolder(), 'plants.db')
  await using storage = await openStorage({ url: `file:${file}` })
  await storage.plants.insert(plant(1))
  const other = new Database(file)
  const count = other.prepare('select count(*) from plants').pluck()
  expect(count.get()).toBe(1)
  await storage[Symbol.asyncDispose]()
  expect(journalOf(file)).toEqual([2, 2])
  expect(count.get()).toBe(1)
  other.close()
})

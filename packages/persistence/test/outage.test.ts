import { openStorage, type StoreState } from '@plant-store/persistence'
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { plant, temporaryFolder } from './store-folder.ts'

test('a store that another program locks is reported once, however many changes fail, and once when it works', async () => {
  const file = `${temporaryFolder()}/plants.db`
  const states: StoreState[] = []
  await using storage = await openStorage({ url: `file:${file}`, onStateChange: state => states.push(state) })
  const insert = (ids: number[]) =>
    Promise.all(ids.map(id => storage.plants.insert(plant(id)).catch(error => error.code)))
  expect(await insert([1])).toEqual(['inserted'])
  expect(states).toEqual([])

  const locking = new Database(file)
  locking.exec('begin immediate')
  expect(await insert([2, 3, 4])).toEqual(Array(3).fill('store-unavailable'))
  expect(await insert([5])).toEqual(['store-unavailable'])
  const failing = { ready: false, reason: 'another program keeps it locked (SQLITE_BUSY)' }
  expect(states).toEqual([failing])

  locking.exec('rollback')
  locking.close()
  expect(await insert([2, 3])).toEqual(Array(2).fill('inserted'))
  await expect.poll(() => states, { timeout: 5_000 }).toEqual([failing, { ready: true }])
}, 30_000)

test('what is asked of a store that is closed is refused, and not reported', async () => {
  const states: StoreState[] = []
  const storage = await openStorage({ url: 'file::memory:', onStateChange: state => states.push(state) })
  await storage[Symbol.asyncDispose]()
  await expect(storage.check()).rejects.toMatchObject({ code: 'store-unavailable' })
  expect(states).toEqual([])
})

import { join } from 'node:path'
import { openStorage } from '@plant-store/persistence'
import { expect, test } from 'vitest'
import { plant, plantId, temporaryFolder } from './store-folder.ts'

test('opens a store again, with what is in it', async () => {
  const url = `file:${join(temporaryFolder(), 'plants.db')}`
  await using first = await openStorage({ url })
  await first.plants.insert(plant(1))
  await using second = await openStorage({ url })
  expect(await second.plants.find(plantId(1))).toEqual(plant(1))
})

test('opens a store several times at the same moment, also one that is not there yet', async () => {
  const url = `file:${join(temporaryFolder(), 'plants.db')}`
  const opened = await Promise.allSettled(Array.from({ length: 4 }, () => openStorage({ url })))
  await using stack = new AsyncDisposableStack()
  const stores = opened.filter(each => each.status === 'fulfilled').map(({ value }) => stack.use(value))
  expect(opened.filter(({ status }) => status === 'rejected')).toEqual([])
  await Promise.all(stores.map((store, n) => store.plants.insert(plant(n))))
  for (const store of stores) expect((await store.plants.page({ limit: 10 })).length).toBe(stores.length)
})

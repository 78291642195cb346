import { join } from 'node:path'
import { openStorage } from '@plant-store/persistence'
import { expect, test } from 'vitest'
import { schemaVersion } from '../src/schema/migrations.ts'
import { plant, plantId, temporaryFolder } from './store-folder.ts'
import { subjects } from './store-subjects.ts'

test('opens a store again, with what is in it', async () => {
  const url = `file:${join(temporaryFolder(), 'plants.db')}`
  await using first = await openStorage({ url })
  await first.plants.insert(plant(1))
  await using second = await openStorage({ url })
  expect((await second.plants.find(plantId(1)))?.plant).toEqual(plant(1))
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

test.each(Object.entries(subjects))('a store on %s knows whether opening it created it', async (_, make) => {
  await using created = await make()
  await using earlier = await make()
  await earlier.run(earlier.earlier(1))
  const versions: unknown[] = []
  for (const { url } of [created, created, earlier, earlier]) {
    await using storage = await openStorage({ url })
    versions.push(storage.versionBefore)
    expect(storage.schemaVersion).toBe(schemaVersion)
  }
  expect(versions).toEqual([undefined, schemaVersion, 1, schemaVersion])
})

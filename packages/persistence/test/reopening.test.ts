import { join } from 'node:path'
import { hashToken } from '@plant-store/access'
import { inspectStore, openSnapshot, openStorage } from '@plant-store/persistence'
import { expect, test } from 'vitest'
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

test.each(Object.entries(subjects))(
  'a store on %s whose only token was removed has none, and knows that it had one',
  async (_, make) => {
    await using store = await make()
    {
      await using storage = await openStorage({ url: store.url })
      expect(await storage.tokens.hadAny()).toBe(false)
      const token = { name: 'only', scopes: ['plants:read'], createdAt: new Date(0) } as const
      await storage.tokens.insert(token, hashToken('secret'))
      await storage.tokens.remove('only')
    }
    expect(await inspectStore(store.url)).toMatchObject({ tokens: 0 })
    {
      await using snapshot = await openSnapshot(store.url)
      expect(snapshot.tokens).toBe(0)
    }
    await using storage = await openStorage({ url: store.url })
    expect(await storage.tokens.hadAny()).toBe(true)
  },
)

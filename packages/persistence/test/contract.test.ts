import { join } from 'node:path'
import { tokenRepositoryContract } from '@plant-store/access/testing'
import { plantRepositoryContract } from '@plant-store/domain/testing'
import { type Commit, openStorage } from '@plant-store/persistence'
import { describe, expect, test } from 'vitest'
import { plant, plantId, temporaryFolder } from './store-folder.ts'

describe.each([
  ['on a file', () => `file:${join(temporaryFolder(), 'plants.db')}`],
  ['in memory', () => 'file::memory:'],
])('SQLite %s keeps the contract', (_, url) => {
  test.each(plantRepositoryContract)('plants: $name', async ({ run }) => {
    await using storage = await openStorage({ url: url() })
    await run(storage.plants)
  })

  test.each(tokenRepositoryContract)('tokens: $name', async ({ run }) => {
    await using storage = await openStorage({ url: url() })
    await run(storage.tokens)
  })

  test('a store that is open can be used', async () => {
    await using storage = await openStorage({ url: url() })
    await storage.check()
  })

  test('a plant and a token take no notice of each other', async () => {
    await using storage = await openStorage({ url: url() })
    const token = { name: '1', scopes: ['plants:read'], createdAt: new Date(0) } as const
    const hash = 'a'.repeat(64) as never
    await Promise.all([storage.plants.insert(plant(1)), storage.tokens.insert(token, hash)])
    expect((await storage.plants.find(plantId(1)))?.plant).toEqual(plant(1))
    expect(await storage.tokens.find(hash)).toEqual(token)
  })
})

test('a store in memory reports its commits', async () => {
  const begunMs = performance.now()
  const commits: Commit[] = []
  await using storage = await openStorage({ url: 'file::memory:', onCommit: commit => commits.push(commit) })
  await Promise.all([storage.plants.insert(plant(1)), storage.plants.insert(plant(2))])
  expect(commits).toEqual([{ changes: 2, ms: expect.any(Number) }])
  expect(commits[0]?.ms).toBeGreaterThanOrEqual(0)
  expect(commits[0]?.ms).toBeLessThanOrEqual(performance.now() - begunMs)
})

test('two stores in memory are two stores', async () => {
  await using one = await openStorage({ url: 'file::memory:' })
  await using other = await openStorage({ url: 'file::memory:' })
  await one.plants.insert(plant(1))
  expect(await other.plants.find(plantId(1))).toBeUndefined()
})

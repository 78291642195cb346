import { join } from 'node:path'
import { plantRepositoryContract } from '@plant-store/domain/testing'
import { openStorage } from '@plant-store/persistence'
import { describe, expect, test } from 'vitest'
import { plant, plantId, temporaryFolder } from './store-folder.ts'
import { tokenRepositoryContract } from './token-repository-contract.ts'

const url = () => `file:${join(temporaryFolder(), 'plants.db')}`

describe('SQLite keeps the contract', () => {
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

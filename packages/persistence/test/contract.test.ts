import { hashToken } from '@plant-store/access'
import { plantRepositoryContract } from '@plant-store/domain/testing'
import type { Entity } from '@plant-store/engine'
import { attachStorage, entities, type Storage } from '@plant-store/persistence'
import { outboxContract } from '@plant-store/webhooks/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { databases, plant, plantId, useStore } from './places.ts'
import { tokenRepositoryContract } from './token-repository-contract.ts'

interface Case<Port> {
  readonly name: string
  run(port: Port, storage: Storage): Promise<void>
}

type EntityName = keyof typeof entities

/** The contract of each entity. Omitting one is a compile error. */
const contracts: { readonly [Name in EntityName]: readonly Case<Storage[Name]>[] } = {
  plants: plantRepositoryContract,
  tokens: Object.entries(tokenRepositoryContract).map(([name, run]) => ({ name, run })),
  webhooks: outboxContract.map(({ name, run }) => ({
    name,
    run: (_, storage) => run(storage),
  })),
}

function casesOf<Name extends EntityName>(entity: Name) {
  const contract: readonly Case<Storage[Name]>[] = contracts[entity]
  return contract.map(({ name, run }) => ({
    name: `${entity}: ${name}`,
    run: (storage: Storage) => run(storage[entity], storage),
  }))
}

// `Object.keys` knows no names.
const cases = (Object.keys(contracts) as EntityName[]).flatMap(casesOf)
const tables = Object.values<Entity>(entities).map(({ tables: [table] }) => table)

describe.each(databases)('%s keeps the contract', name => {
  const store = useStore(name, tables)
  // A thread that joins has what the one that opens has, which joins too.
  let storage: Storage
  beforeAll(async () => {
    storage = await attachStorage(store.storage.share())
  })
  afterAll(() => storage[Symbol.asyncDispose]())

  test.each(cases)('$name', ({ run }) => run(storage))

  test('a plant and a token take no notice of each other', async () => {
    const token = { name: '1', scopes: ['plants:read'], createdAt: new Date(0) } as const
    const hash = hashToken('1')

    await Promise.all([
      storage.plants.insert(plant(1)),
      storage.tokens.insert(token, hash),
    ])

    const stored = await storage.plants.find(plantId(1))
    expect(stored?.plant).toEqual(plant(1))
    expect(await storage.tokens.find(hash)).toEqual(token)
  })
})

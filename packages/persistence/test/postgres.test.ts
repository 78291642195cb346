import { tokenRepositoryContract } from '@plant-store/access/testing'
import { plantRepositoryContract } from '@plant-store/domain/testing'
import { openStorage, type Storage } from '@plant-store/persistence'
import { createDatabase, type TestDatabase } from '@plant-store/postgres'
import { afterAll, beforeAll, beforeEach, describe, inject, test } from 'vitest'
import '@plant-store/postgres/vitest'

let database: TestDatabase
let storage: Storage

beforeAll(async () => {
  database = await createDatabase(inject('postgresUrl'))
  storage = await openStorage({ url: database.url })
})
beforeEach(async () => {
  await database.query('truncate plants, access_tokens')
})
afterAll(async () => {
  await storage[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})

describe('the port of plants on PostgreSQL', () => {
  for (const { name, run } of plantRepositoryContract) test(name, () => run(storage.plants))
})

describe('the port of tokens on PostgreSQL', () => {
  for (const { name, run } of tokenRepositoryContract) test(name, () => run(storage.tokens))
})

import { openStorage } from '@plant-store/persistence'
import { outboxContract } from '@plant-store/webhooks/testing'
import { afterEach, beforeEach, describe, test } from 'vitest'
import { type Subject, subjects } from './store-subjects.ts'

describe.each(Object.entries(subjects))('on %s', (_, make) => {
  let store: Subject
  beforeEach(async () => {
    store = await make()
  })
  afterEach(() => store[Symbol.asyncDispose]())

  test.each(outboxContract)('the outbox $name', async ({ run }) => {
    await using storage = await openStorage({ url: store.url })
    await run({ ...storage, add: storage.plants.insert })
  })
})

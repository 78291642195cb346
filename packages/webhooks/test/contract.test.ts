import { createMemoryStore, outboxContract } from '@plant-store/webhooks/testing'
import { test } from 'vitest'

test.each(outboxContract)('the store in memory $name', ({ run }) =>
  run(createMemoryStore()),
)

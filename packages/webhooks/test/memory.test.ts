import type { PlantVersion } from '@plant-store/domain'
import { createMemoryOutbox, outboxContract } from '@plant-store/webhooks/testing'
import { test } from 'vitest'

test.each(outboxContract)('the outbox in memory $name', async ({ run }) => {
  const outbox = createMemoryOutbox()
  let versions = 0
  const add = async (plant: Parameters<Parameters<typeof run>[0]['add']>[0]) =>
    outbox.announce({ plant, version: `${++versions}` as PlantVersion, addedAt: new Date() })
  await run({ webhooks: outbox.webhooks, outbox, add })
})

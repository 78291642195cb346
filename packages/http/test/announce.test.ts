import { createPlantUseCases } from '@plant-store/domain'
import { createMemoryPlantRepository } from '@plant-store/domain/testing'
import { expect, test } from 'vitest'
import { startService } from './memory-service.ts'

test('a batch is announced unless its query says announce=false', async () => {
  const [plants, silent] = [createMemoryPlantRepository(), createMemoryPlantRepository()]
  await using service = await startService({
    plants,
    unannounced: createPlantUseCases({ plants: silent }),
  })
  const headers = { 'content-type': 'application/x-ndjson' }
  for (const [id, query] of [
    '',
    '?announce=true',
    '?announce=false',
    '?announce=no',
  ].entries()) {
    await service.client.ask('POST', `/plants/batch${query}`, {
      body: `{"id":${id},"name":"n"}`,
      headers,
    })
  }
  const idsIn = async ({ page }: typeof plants) =>
    (await page({ limit: 10, textBytesMax: 100 })).map(({ id }) => id)
  expect([await idsIn(plants), await idsIn(silent)]).toEqual([[0n, 1n], [2n]])
})

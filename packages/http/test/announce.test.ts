import { createPlantUseCases } from '@plant-store/domain'
import { createMemoryPlantRepository } from '@plant-store/domain/testing'
import { expect, test } from 'vitest'
import { startService } from './memory-service.ts'

test('a batch is announced unless its query says announce=false', async () => {
  const plants = createMemoryPlantRepository()
  const silentPlants = createMemoryPlantRepository()
  await using service = await startService({
    plants,
    unannounced: createPlantUseCases({ plants: silentPlants }),
  })
  const postBatch = (query: string, id: number) =>
    service.client.ask('POST', `/plants/batch${query}`, {
      headers: { 'content-type': 'application/x-ndjson' },
      body: `{"id":${id},"name":"n"}`,
    })

  await postBatch('', 0)
  await postBatch('?announce=true', 1)
  await postBatch('?announce=false', 2)
  await postBatch('?announce=no', 3)

  const bounds = { limit: 10, textBytesMax: 100 }
  const announced = await plants.page(bounds)
  const unannounced = await silentPlants.page(bounds)
  expect(announced.map(({ id }) => id)).toEqual([0n, 1n])
  expect(unannounced.map(({ id }) => id)).toEqual([2n])
})

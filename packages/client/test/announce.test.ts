import { expect, test } from 'vitest'
import { answer, scripted } from './scripted-store.ts'

test('plants are announced unless told otherwise', async () => {
  const done = answer(200, { created: 1, existing: 0, refused: 0, faults: [] })
  await using store = await scripted([done, done, done])
  for (const announce of [undefined, true, false]) {
    await store.client.createMany(
      [{ id: 1n, name: 'n' }],
      announce === undefined ? {} : { announce },
    )
  }
  expect(store.requests.map(({ url }) => url)).toEqual([
    '/plants/batch',
    '/plants/batch',
    '/plants/batch?announce=false',
  ])
})

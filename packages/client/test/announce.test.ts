import { expect, test } from 'vitest'
import { answer, scripted } from './scripted-store.ts'

test.each([
  { options: {}, url: '/plants/batch' },
  { options: { announce: true }, url: '/plants/batch' },
  { options: { announce: false }, url: '/plants/batch?announce=false' },
])('createMany with the options %j sends a POST to $url', async ({ options, url }) => {
  const counts = { created: 1, existing: 0, refused: 0 }
  await using store = await scripted([answer(200, { ...counts, faults: [] })])

  await store.client.createMany([{ id: 1n, name: 'n' }], options)

  expect(store.requests).toMatchObject([{ method: 'POST', url }])
})

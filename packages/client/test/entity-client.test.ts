import { createEntityClient, type ListQuery, type Version } from '@plant-store/client'
import type { Int64 } from '@plant-store/domain'
import { expect, test } from 'vitest'
import { answer, die, startScriptedStore } from './scripted-store.ts'

test('another entity has its own path, rules, query and number for 404', async () => {
  const version = 'v1' as Version
  const missing = answer(404, { error: 40411, message: 'there is no garden with id 7' })
  const failed = answer(412, {
    error: 41201,
    message: 'garden 7 does not have the expected version',
  })
  const nowhere = answer(404, { error: 40401, message: 'there is nothing at this path' })
  await using store = await startScriptedStore([
    answer(200, '[{"id":7,"new":9007199254740993}]', {
      link: '</gardens?after=7>; rel="next"',
    }),
    answer(200, '{"new":9007199254740993}', { etag: '"v1"' }),
    ...[die, failed, missing],
    ...[die, failed, nowhere],
  ])
  const gardens = createEntityClient({
    ...{ baseUrl: store.baseUrl, token: 't', path: '/gardens' },
    parse: (value, id) => ({ id, ...(value as object) }) as { id: Int64 },
    parseId: id => id as Int64,
    parseQuery: (query: ListQuery & { owner?: string }) => query,
  })
  const garden = { id: 7n, new: 2n ** 53n + 1n }
  expect(await gardens.list({ limit: 1, owner: 'me' })).toEqual({
    items: [garden],
    next: 7n,
  })
  expect(await gardens.replace(garden)).toEqual({ item: garden, version })
  await gardens.remove(7n, { ifMatch: version })
  await expect(gardens.remove(7n, { ifMatch: version })).rejects.toMatchObject({
    status: 412,
  })
  const [listed, replaced] = store.requests
  expect(listed?.url).toBe('/gardens?limit=1&owner=me')
  expect([replaced?.method, replaced?.url, replaced?.body]).toEqual([
    'PUT',
    '/gardens/7',
    '{"new":9007199254740993}',
  ])
})

import { createEntityClient, type ListQuery, type Version } from '@plant-store/client'
import type { Int64 } from '@plant-store/domain'
import { expect, test } from 'vitest'
import { answer, die, scripted } from './scripted-store.ts'

interface Garden {
  readonly id: Int64
}

test('another entity has its own path, rules, query and number for 404', async () => {
  const version = 'v1' as Version
  const missing = answer(404, { error: 40411, message: 'there is no garden with id 7' })
  const inAnotherState = answer(412, { error: 41201, message: 'read it again' })
  const noSuchPath = answer(404, { error: 40401, message: 'nothing is at this path' })
  await using store = await scripted([
    answer(200, '[{"id":7,"new":9007199254740993}]', {
      link: '</gardens?after=7>; rel="next"',
    }),
    answer(200, '{"new":9007199254740993}', { etag: '"v1"' }),
    ...[die, inAnotherState, missing],
    ...[die, inAnotherState, noSuchPath],
  ])
  const gardens = createEntityClient({
    baseUrl: store.baseUrl,
    token: 't',
    path: '/gardens',
    parse: (value, id): Garden => ({ id, ...Object(value) }),
    parseId: id => id as Int64,
    parseQuery: (query: ListQuery & { owner?: string }) => query,
  })
  const garden = { id: 7n, new: 2n ** 53n + 1n }

  const page = await gardens.list({ limit: 1, owner: 'me' })
  expect(page).toEqual({ items: [garden], next: 7n })

  expect(await gardens.replace(garden)).toEqual({
    item: garden,
    version,
    created: false,
  })

  await gardens.remove(7n, { ifMatch: version })
  const removal = gardens.remove(7n, { ifMatch: version })
  await expect(removal).rejects.toMatchObject({ status: 412 })

  const headers = { accept: 'application/json', authorization: 'Bearer t' }
  expect(store.requests.slice(0, 2)).toMatchObject([
    { method: 'GET', url: '/gardens?limit=1&owner=me', headers },
    { method: 'PUT', url: '/gardens/7', body: '{"new":9007199254740993}', headers },
  ])
})

import { createPlantClient } from '@plant-store/client'
import { int64Max, int64Min } from '@plant-store/domain'
import { fullPlant } from '@plant-store/domain/testing'
import { expect, test } from 'vitest'
import { startMemoryStore } from './memory-store.ts'
import { answer, scripted } from './scripted-store.ts'

async function collect<Page>(pages: AsyncIterable<Page>) {
  const collected: Page[] = []
  for await (const page of pages) {
    collected.push(page)
  }
  return collected
}

const plants = [
  fullPlant(int64Min, '"quoted" \\ {"id": 12345678901234567890}'),
  fullPlant(9_007_199_254_740_993n, 'e\u0301 \u0001\u2028 \u{1f331}'),
  fullPlant(int64Max, '-17'),
]

test('every member of a plant comes back exactly as it was sent', async () => {
  await using store = await startMemoryStore({ path: '/garden/v1' })
  const client = createPlantClient(store)
  for (const plant of plants) {
    expect(await client.create(plant), `created ${plant.id}`).toEqual(plant)
    expect(await client.read(plant.id), `read ${plant.id}`).toEqual(plant)

    await client.replace(
      { id: plant.id, name: '', tag: undefined },
      { signal: undefined },
    )
    const replacement = await client.replace(plant)
    const current = await client.readVersioned(plant.id)
    expect(replacement, `replaced ${plant.id}`).toEqual({ ...current, created: false })
    expect(replacement.item, `replaced ${plant.id}`).toEqual(plant)
  }
  expect(await client.list()).toEqual({ items: plants })

  for (const { id } of plants) {
    expect(await client.remove(id), `removed ${id}`).toBeUndefined()
  }
  await expect(client.read(0n)).rejects.toMatchObject({
    status: 404,
    number: 40402,
    message: 'there is no plant with id 0',
    mayHaveChanged: false,
  })

  await client.createMany(plants)
  const page = await client.list({ count: true })
  expect(page).toEqual({ items: plants, total: plants.length })
  const pages = await collect(client.pages({ limit: 2 }))
  expect(pages).toEqual([plants.slice(0, 2), plants.slice(2)])
})

test('a version keeps changes of others from being overwritten', async () => {
  await using store = await startMemoryStore()
  const client = createPlantClient(store)
  const plant = { id: 1n, name: 'first' }
  const first = await client.replace(plant, { ifNoneMatch: '*' })
  const isFirst = { ifMatch: first.version }
  const second = await client.replace({ id: 1n, name: 'second' }, isFirst)
  const { created, ...secondState } = second

  const reason = { status: 412, number: 41201, mayHaveChanged: false }
  const staleChanges = await Promise.allSettled([
    client.replace(plant, { ifNoneMatch: '*' }),
    client.replace(plant, isFirst),
    client.remove(1n, isFirst),
  ])

  expect(staleChanges).toMatchObject([{ reason }, { reason }, { reason }])
  expect([first.created, created]).toEqual([true, false])
  expect(await client.readVersioned(1n)).toEqual(secondState)
  await client.remove(1n, { ifMatch: second.version })
})

const page = (body: string, link: string) => answer(200, body, { link })
const nextAfter = (id: number) => `</plants?limit=1&after=${id}&tag=a>; rel="next"`
const ficusPage = '[{"id":1,"name":"Ficus"}]'

test('a search goes on over empty pages, and stops when it is aborted', async () => {
  await using store = await scripted([
    page('[]', nextAfter(-7)),
    page(ficusPage, ''),
    page('[]', nextAfter(9)),
  ])
  const search = { name_contains: 'Ficus', tag: 'a +%' }

  const pages = await collect(store.client.pages(search))

  expect(pages).toEqual([[], [{ id: 1n, name: 'Ficus' }]])
  expect(store.requests.map(({ url }) => url)).toEqual([
    '/plants?limit=100&tag=a+%2B%25&name_contains=Ficus',
    '/plants?limit=100&after=-7&tag=a+%2B%25&name_contains=Ficus',
  ])

  const caller = new AbortController()
  const { signal } = caller
  const endlessPages = store.client.pages(search, { signal })
  expect((await endlessPages.next()).value).toEqual([])

  caller.abort()
  await expect(endlessPages.next()).rejects.toBe(signal.reason)
})

test('only a link to a next page leads to one, and a page is a list', async () => {
  const links =
    '<https://elsewhere.example/?after=9>; rel="prev", <//elsewhere.example/?after=1>; rel="next"'
  await using store = await scripted([
    page(ficusPage, links),
    page(ficusPage, '</plants?after=1>; rel="prev"'),
    answer(200, '{"plants":[]}'),
  ])
  const pages = await collect(store.client.pages())

  expect(pages).toHaveLength(2)
  expect(store.requests.map(({ url }) => url)).toEqual([
    '/plants?limit=100',
    '/plants?limit=100&after=1',
  ])
  await expect(store.client.list()).rejects.toMatchObject({ reason: 'unreadable-answer' })
})

test.each([10_000, '10000+'])('a total count of %s has its type', async total => {
  const page = answer(200, '[]', { 'total-count': `${total}` })
  await using store = await scripted([page])

  const counted = await store.client.list({ count: true })

  expect(counted).toEqual({ items: [], total })
})

test('what the domain refuses is not sent', async () => {
  await using store = await scripted([])
  const { client } = store

  const results = await Promise.allSettled([
    client.create({ id: 1n, name: '\ud800' }),
    client.read(1 as never),
    client.list({ limit: 0 }),
  ])

  expect(results).toMatchObject([
    { reason: { name: 'DomainError', code: 'invalid-plant' } },
    { reason: { name: 'DomainError', code: 'invalid-id' } },
    { reason: { name: 'DomainError', code: 'invalid-query' } },
  ])
  expect(store.requests).toEqual([])
})

import { createPlantClient } from '@plant-store/client'
import { DomainError } from '@plant-store/domain'
import { edgeIds, fullPlant, texts } from '@plant-store/domain/testing'
import { expect, test } from 'vitest'
import { startMemoryStore } from './memory-store.ts'
import { answer, scripted } from './scripted-store.ts'

async function all<Page>(pages: AsyncIterable<Page>): Promise<readonly Page[]> {
  const read: Page[] = []
  for await (const page of pages) {
    read.push(page)
  }
  return read
}

/** Texts that look like JSON and its numbers, and those of the contract. */
const awkward = ['"quoted" \\ {"id": 12345678901234567890}', '-17', '\\', ...texts]
const plants = edgeIds.map((id, n) =>
  fullPlant(id, awkward[n % awkward.length] as string),
)

test('every member of a plant comes back exactly as it was sent', async () => {
  await using store = await startMemoryStore()
  const client = createPlantClient(store)
  for (const plant of plants) {
    expect(await client.create(plant), `${plant.id}`).toEqual(plant)
    expect(await client.read(plant.id), `${plant.id}`).toEqual(plant)
    await client.replace({ id: plant.id, name: '' })
    const replaced = await client.replace(plant)
    expect(replaced, `${plant.id}`).toEqual(await client.readVersioned(plant.id))
    expect(replaced.item, `${plant.id}`).toEqual(plant)
  }
  expect(await client.list()).toEqual({ items: plants })
  for (const { id } of plants) {
    expect(await client.remove(id), `${id}`).toBeUndefined()
  }
  const missing = {
    status: 404,
    number: 40402,
    message: 'there is no plant with id 0',
    mayHaveChanged: false,
  }
  await expect(client.read(0n)).rejects.toMatchObject(missing)
  await client.createMany(plants)
  expect(await client.list({ count: true })).toEqual({
    items: plants,
    total: plants.length,
  })
})

test('a version keeps changes of others from being overwritten', async () => {
  await using store = await startMemoryStore()
  const client = createPlantClient(store)
  const differs = { status: 412, number: 41201, mayHaveChanged: false }
  const first = await client.replace({ id: 1n, name: 'first' }, { ifNoneMatch: '*' })
  const second = await client.replace(
    { id: 1n, name: 'second' },
    { ifMatch: first.version },
  )
  const stale = await Promise.allSettled([
    client.replace({ id: 1n, name: 'third' }, { ifNoneMatch: '*' }),
    client.replace({ id: 1n, name: 'third' }, { ifMatch: first.version }),
    client.remove(1n, { ifMatch: first.version }),
  ])
  expect(stale).toMatchObject(stale.map(() => ({ reason: differs })))
  expect(await client.readVersioned(1n)).toEqual(second)
  await client.remove(1n, { ifMatch: second.version })
})

test('optional members and options may be undefined', async () => {
  await using store = await startMemoryStore()
  const client = createPlantClient(store)
  const maybe: string | undefined = undefined
  const signal: AbortSignal | undefined = undefined
  for (const id of [1n, 2n]) {
    await client.create({ id, name: 'n', tag: maybe }, { signal })
  }

  const first = await client.list({ limit: 1, tag: maybe })
  expect(first).toEqual({ items: [{ id: 1n, name: 'n' }], next: 1n })
  const last = await client.list({ after: first.next })
  expect(last).toEqual({ items: [{ id: 2n, name: 'n' }] })
  expect((await client.list({ after: last.next })).items).toHaveLength(2)
})

test('pages go on to the end, and stop where the caller leaves them', async () => {
  await using store = await startMemoryStore({ path: '/garden/v1' })
  let requests = 0
  const counting: typeof fetch = (...request) => {
    requests++
    return fetch(...request)
  }
  const client = createPlantClient({ ...store, fetch: counting })
  for (let id = 1n; id <= 5n; id++) {
    await client.create({ id, name: 'p', tag: id === 2n ? 'b&c' : 'a +%' })
  }
  requests = 0
  const pages = await all(client.pages({ limit: 2, tag: 'a +%' }))
  expect(pages.map(page => page.map(({ id }) => id).join())).toEqual(['1,3', '4,5'])
  expect(requests).toBe(2)
  for await (const plants of client.pages({ limit: 2, after: 1n })) {
    expect(plants.map(({ id }) => id)).toEqual([2n, 3n])
    break
  }
  expect(requests).toBe(3)
})

const page = (body: string, link: string, more = {}) =>
  answer(200, body, { link, ...more })
const nextAfter = (id: number) => `</plants?limit=1&after=${id}&tag=a>; rel="next"`
const found = '[{"id":1,"name":"Ficus"}]'

test('a search goes on over empty pages, and stops when it is aborted', async () => {
  await using store = await scripted([
    page('[]', nextAfter(-7)),
    page(found, ''),
    page('[]', nextAfter(9)),
  ])
  const pages = await all(store.client.pages({ name_contains: 'wanted' }))
  expect(pages).toEqual([[], [{ id: 1n, name: 'Ficus' }]])
  const search = '/plants?limit=100&name_contains=wanted'
  const next = '/plants?limit=100&after=-7&name_contains=wanted'
  expect(store.requests.map(({ url }) => url)).toEqual([search, next])

  const controller = new AbortController()
  const endless = store.client.pages(
    { name_contains: 'none' },
    { signal: controller.signal },
  )
  expect((await endless.next()).value).toEqual([])
  controller.abort()
  await expect(endless.next()).rejects.toBe(controller.signal.reason)
})

test('only a link to a next page leads to one, and a page is a list', async () => {
  const links =
    '<https://elsewhere.example/?after=9>; rel="prev", <//elsewhere.example/?after=1>; rel="next"'
  await using store = await scripted([
    page(found, links),
    page(found, '</plants?after=1>; rel="prev"'),
    answer(200, '{"plants":[]}'),
  ])
  expect(await all(store.client.pages())).toHaveLength(2)
  expect(store.requests.map(({ url }) => url)).toEqual([
    '/plants?limit=100',
    '/plants?limit=100&after=1',
  ])
  await expect(store.client.list()).rejects.toMatchObject({ reason: 'unreadable-answer' })
})

test('a count is a number up to a bound', async () => {
  const counted = (count: string) => answer(200, '[]', { 'total-count': count })
  await using store = await scripted([counted('10000'), counted('10000+')])
  for (const total of [10_000, '10000+']) {
    expect(await store.client.list({ count: true }), `${total}`).toEqual({
      items: [],
      total,
    })
  }
})

test('what the domain refuses is not sent', async () => {
  await using store = await scripted([])
  const { client } = store
  const refused = (code: string) => expect.objectContaining({ name: 'DomainError', code })
  await expect(client.create({ id: 1n, name: '\ud800' })).rejects.toEqual(
    refused('invalid-plant'),
  )
  await expect(client.replace({ id: 2n ** 63n, name: '' })).rejects.toEqual(
    refused('invalid-plant'),
  )
  await expect(client.read(1 as unknown as bigint)).rejects.toEqual(refused('invalid-id'))
  await expect(client.remove(2n ** 63n)).rejects.toThrow(DomainError)
  await expect(client.list({ limit: 0 })).rejects.toEqual(refused('invalid-query'))
  expect(store.requests).toEqual([])
})

test('the token is asked for with every request', async () => {
  await using store = await startMemoryStore()
  const given = ['expired', store.token]
  const client = createPlantClient({
    ...store,
    token: async () => given.shift() as string,
  })
  await expect(client.list()).rejects.toMatchObject({ status: 401, number: 40102 })
  expect(await client.list()).toEqual({ items: [] })
  expect(given).toEqual([])
})

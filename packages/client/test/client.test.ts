import { createPlantClient, RefusedError } from '@plant-store/client'
import { DomainError } from '@plant-store/domain'
import { edgeIds, fullPlant, texts } from '@plant-store/domain/testing'
import { expect, test } from 'vitest'
import { startMemoryStore } from './memory-store.ts'

test('a plant goes through its whole life', async () => {
  await using store = await startMemoryStore()
  const client = createPlantClient(store)
  const monstera = { id: 1n, name: 'Monstera', tag: 'climber' }

  expect(await client.create(monstera)).toEqual(monstera)
  expect(await client.read(1n)).toEqual(monstera)
  const replaced = await client.replace({ id: 1n, name: 'Ficus' })
  expect(replaced).toEqual(await client.readVersioned(1n))
  expect(replaced.item).toEqual({ id: 1n, name: 'Ficus' })
  expect(await client.read(1n)).toEqual({ id: 1n, name: 'Ficus' })
  expect(await client.remove(1n)).toBeUndefined()
  await expect(client.read(1n)).rejects.toMatchObject({ status: 404, number: 40402 })
})

test('a version keeps changes of others from being overwritten', async () => {
  await using store = await startMemoryStore()
  const client = createPlantClient(store)
  const differs = { status: 412, number: 41201, mayHaveChanged: false }
  const first = await client.replace({ id: 1n, name: 'first' }, { ifNoneMatch: '*' })
  await expect(client.replace({ id: 1n, name: 'again' }, { ifNoneMatch: '*' })).rejects.toMatchObject(differs)
  const second = await client.replace({ id: 1n, name: 'second' }, { ifMatch: first.version })
  for (const stale of [
    client.replace({ id: 1n, name: 'third' }, { ifMatch: first.version }),
    client.remove(1n, { ifMatch: first.version }),
  ])
    await expect(stale).rejects.toMatchObject(differs)
  expect(await client.readVersioned(1n)).toEqual(second)
  await client.remove(1n, { ifMatch: second.version })
  await client.create({ id: 1n, name: 'second' })
  await expect(client.remove(1n, { ifMatch: second.version })).rejects.toMatchObject(differs)
})

test('what need not be given may be undefined: the next page as the last one names it, a tag, a signal', async () => {
  await using store = await startMemoryStore()
  const client = createPlantClient(store)
  const maybe: string | undefined = undefined
  const signal: AbortSignal | undefined = undefined
  for (const id of [1n, 2n]) await client.create({ id, name: 'n', tag: maybe }, { signal })

  const first = await client.list({ limit: 1, tag: maybe })
  expect(first).toEqual({ items: [{ id: 1n, name: 'n' }], next: 1n })
  const last = await client.list({ after: first.next })
  expect(last).toEqual({ items: [{ id: 2n, name: 'n' }] })
  expect((await client.list({ after: last.next })).items).toHaveLength(2)
})

/** Plants with every member, whose texts look like JSON and its numbers. */
const plantsWithEveryMember = edgeIds.map((id, n) =>
  fullPlant(
    id,
    ['"quoted" \\ {"id": 12345678901234567890}', '-17', '\\', ...texts][n % (texts.length + 3)] as string,
  ),
)

test('every member of a plant comes back exactly as it went', async () => {
  await using store = await startMemoryStore()
  const client = createPlantClient(store)
  for (const plant of plantsWithEveryMember) {
    expect(await client.create(plant)).toEqual(plant)
    expect(await client.read(plant.id)).toEqual(plant)
    await client.replace({ id: plant.id, name: '' })
    expect((await client.replace(plant)).item).toEqual(plant)
  }
  expect((await client.list()).items).toEqual(plantsWithEveryMember)
  for (const plant of plantsWithEveryMember) await client.remove(plant.id)
  expect(await client.list()).toEqual({ items: [] })
  await client.createMany(plantsWithEveryMember)
  expect((await client.list()).items).toEqual(plantsWithEveryMember)
})

test('pages follow one another to the end, below a path too, and stop where they are left', async () => {
  await using store = await startMemoryStore({ path: '/garden/v1' })
  const requested: string[] = []
  const client = createPlantClient({
    ...store,
    fetch: (url, init) => {
      requested.push(`${url}`)
      return fetch(url, init)
    },
  })
  for (let id = 1n; id <= 7n; id++) await client.create({ id, name: 'p', tag: id === 4n ? 'b&c' : 'a +%' })
  requested.length = 0

  const pages: bigint[][] = []
  for await (const plants of client.pages({ limit: 2, tag: 'a +%' })) pages.push(plants.map(({ id }) => id))
  expect(pages).toEqual([
    [1n, 2n],
    [3n, 5n],
    [6n, 7n],
  ])
  expect(requested).toHaveLength(3)

  for await (const plants of client.pages({ limit: 3, after: 1n })) {
    expect(plants.map(({ id }) => id)).toEqual([2n, 3n, 4n])
    break
  }
  expect(requested).toHaveLength(4)
  expect(await client.list({ limit: 3, after: 3n })).toMatchObject({ items: { length: 3 }, next: 6n })
  const withoutLimit: object = { limit: undefined, after: 6n }
  expect(await client.list(withoutLimit)).toEqual({ items: [{ id: 7n, name: 'p', tag: 'a +%' }] })
})

test('a search goes on over empty pages to the end, and stops where it is aborted', async () => {
  await using store = await startMemoryStore()
  const client = createPlantClient(store)
  await client.createMany(
    Array.from({ length: 10_001 }, (_, n) => ({ id: BigInt(n), name: n % 5_000 === 0 ? 'Wanted' : 'n' })),
  )
  const pages: bigint[][] = []
  for await (const plants of client.pages({ name_contains: 'wanted' })) pages.push(plants.map(({ id }) => id))
  expect(pages).toEqual([[0n], [5_000n], [10_000n]])

  const controller = new AbortController()
  const search = client.pages({ name_contains: 'none such' }, { signal: controller.signal })
  expect((await search.next()).value).toEqual([])
  controller.abort()
  await expect(search.next()).rejects.toBe(controller.signal.reason)
  expect(await client.list({ limit: 1, count: true })).toMatchObject({ next: 0n, total: '10000+' })
  await client.remove(0n)
  expect((await client.list({ count: true })).total).toBe(10_000)
  expect(await client.list({ tag: 'none', count: true })).toEqual({ items: [], total: 0 })
})

test('a request says which content it has, if any, and which it takes', async () => {
  const sent: string[][][] = []
  const client = createPlantClient({
    baseUrl: 'http://store',
    token: 't',
    async fetch(_url, init) {
      sent.push([...new Headers(init?.headers)])
      return Response.json({ id: 1, name: 'a' })
    },
  })
  await client.read(1n)
  await client.create({ id: 1n, name: 'a' })
  const always = [
    ['accept', 'application/json'],
    ['authorization', 'Bearer t'],
  ]
  expect(sent).toEqual([always, [...always, ['content-type', 'application/json']]])
})

test('what the domain refuses is not sent', async () => {
  const client = createPlantClient({
    baseUrl: 'http://127.0.0.1:1',
    token: 't',
    fetch: () => Promise.reject(new Error('it was sent')),
  })
  const refused = (code: string) => expect.objectContaining({ name: 'DomainError', code })
  await expect(client.create({ id: 1n, name: '\ud800' })).rejects.toEqual(refused('invalid-plant'))
  await expect(client.replace({ id: 2n ** 63n, name: '' })).rejects.toEqual(refused('invalid-plant'))
  await expect(client.read(1 as unknown as bigint)).rejects.toEqual(refused('invalid-id'))
  await expect(client.remove(2n ** 63n)).rejects.toThrow(DomainError)
  for (const limit of [0, 1001, 1.5, Number.NaN]) {
    await expect(client.list({ limit })).rejects.toEqual(refused('invalid-query'))
  }
})

test('a refusal carries status, number and words of the store', async () => {
  await using store = await startMemoryStore()
  const client = createPlantClient(store)
  await client.create({ id: 7n, name: 'first' })
  const error = await client.create({ id: 7n, name: 'second' }).catch(error => error)
  expect(error).toBeInstanceOf(RefusedError)
  expect(error).toMatchObject({
    name: 'RefusedError',
    status: 400,
    number: 40003,
    message: 'id 7 is already taken',
    mayHaveChanged: false,
  })
  const stranger = createPlantClient({ ...store, token: 'another' })
  await expect(stranger.list()).rejects.toMatchObject({ status: 401, number: 40102 })
})

test('the token is asked for with every request', async () => {
  await using store = await startMemoryStore()
  const given = ['expired', store.token]
  const client = createPlantClient({ ...store, token: async () => given.shift() as string })
  await expect(client.list()).rejects.toMatchObject({ status: 401 })
  expect(await client.list()).toEqual({ items: [] })
  expect(given).toEqual([])
})

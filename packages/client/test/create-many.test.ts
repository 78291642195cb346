import { createPlantClient } from '@plant-store/client'
import { beforeEach, expect, test, vi } from 'vitest'
import { startMemoryStore } from './memory-store.ts'
import { answer, busy, die, scripted, unavailable } from './scripted-store.ts'

// No random part of a wait is waited for.
beforeEach(() => void vi.spyOn(Math, 'random').mockReturnValue(0))

function plant(n: number, name = `plant ${n}`) {
  return { id: BigInt(n), name }
}

function plants(count: number) {
  return Array.from({ length: count }, (_, n) => plant(n))
}

function counts(created: number, existing = 0, refused = 0) {
  return { created, existing, refused }
}

function taken(n: number) {
  return { index: n, error: 40003, message: `id ${n} is already taken` }
}

const done = answer(200, { ...counts(1), faults: [] })
const tooLarge = answer(413, { error: 41301, message: 'too large' })

test('many plants are created in few requests, and exist the second time', async () => {
  await using store = await startMemoryStore()
  const countedFetch = vi.fn(fetch)
  const client = createPlantClient({ ...store, fetch: countedFetch })
  async function* stream() {
    yield* plants(5_001)
  }

  const results = [
    await client.createMany(stream()),
    await client.createMany(plants(5_002)),
    await client.createMany([]),
  ]

  expect(results).toEqual([
    { ...counts(5_001), faults: [] },
    { ...counts(1, 5_001), faults: [] },
    { ...counts(0), faults: [] },
  ])
  expect(countedFetch).toHaveBeenCalledTimes(4)
})

test('refused plants are faults with their index, the others are created', async () => {
  await using store = await startMemoryStore()
  const client = createPlantClient(store)
  const takenIds = [0, 3, 5_001]
  await client.createMany(takenIds.map(n => plant(n, 'another')))

  const result = await client.createMany(plants(5_003).with(1, plant(1, '\0')))

  const broken = { index: 1, error: 40002, message: 'name must not contain U+0000' }
  const faults = [taken(0), broken, taken(3), taken(5_001)]
  expect(result).toEqual({ ...counts(4_999, 0, 4), faults })
  await expect(client.read(1n)).rejects.toMatchObject({ status: 404 })
})

test('a part is full at 1 MiB', async () => {
  await using store = await scripted([done, done])
  const frame = '{"id":1,"name":"plant 1","tag":""}'
  const tag = 'x'.repeat(2 ** 20 - frame.length)

  await store.client.createMany([{ ...plant(1), tag }, plant(2)])

  const [first, second] = store.requests
  expect(first?.body).toHaveLength(2 ** 20)
  expect(second?.body).toBe('{"id":2,"name":"plant 2"}')
})

test('a plant above the body limit is refused, the others are created', async () => {
  await using store = await scripted([tooLarge, done, tooLarge])

  const result = await store.client.createMany(plants(2))

  const faults = [{ index: 1, error: 41301, message: 'too large' }]
  expect(result).toEqual({ ...counts(1, 0, 1), faults })
})

test('the counts and the first hundred faults of both halves are the whole', async () => {
  const faultsOfHalf = Array.from({ length: 60 }, () => ({
    line: 1,
    error: 40003,
    message: 'taken',
  }))
  await using store = await scripted([
    tooLarge,
    answer(200, { ...counts(1, 2, 3), faults: faultsOfHalf }),
    answer(200, { ...counts(10, 20, 30), faults: faultsOfHalf }),
  ])

  const { faults, ...counted } = await store.client.createMany(plants(66))

  expect(counted).toEqual(counts(11, 22, 33))
  const indexes = [...Array(60).fill(0), ...Array(40).fill(33)]
  expect(faults.map(({ index }) => index)).toEqual(indexes)
})

test('a batch is repeated after a failure with an unknown outcome', async () => {
  await using store = await scripted([die, unavailable, busy(), done])
  expect(await store.client.createMany([plant(1)])).toMatchObject(counts(1))
  const requests = store.requests.map(({ url, body }) => `${url} ${body}`)
  const request = '/plants/batch {"id":1,"name":"plant 1"}'
  expect(requests).toEqual([request, request, request, request])
})

test('a batch that is not announced says so', async () => {
  await using store = await scripted([done])

  await store.client.createMany([plant(1)], { announce: false })

  expect(store.requests).toMatchObject([{ url: '/plants/batch?announce=false' }])
})

test('a failure says that plants may have been created', async () => {
  const unauthorized = answer(401, { error: 40102, message: 'no' })
  const withoutCount = answer(200, { created: 1, existing: 0, faults: [] })
  await using store = await scripted([done, unauthorized, withoutCount])
  const { client } = store

  const refusal = { number: 40102, mayHaveChanged: true }
  await expect(client.createMany(plants(5_001))).rejects.toMatchObject(refusal)

  const unreadable = { reason: 'unreadable-answer', mayHaveChanged: true }
  await expect(client.createMany([plant(1)])).rejects.toMatchObject(unreadable)
  expect(store.requests).toHaveLength(3)
})

test('an error of the source or the signal ends the creation', async () => {
  await using store = await scripted([done, done])
  const { client } = store
  const error = new Error('no more')
  async function* failingSource() {
    yield* plants(5_000)
    throw error
  }
  await expect(client.createMany(failingSource())).rejects.toBe(error)

  const signal = AbortSignal.abort(error)
  await expect(client.createMany([plant(1)], { signal })).rejects.toBe(error)

  // A plant that cannot be read is a mistake of the program, so it is no fault.
  const mistake = {
    name: 'n',
    get id(): bigint {
      throw error
    },
  }
  await expect(client.createMany([mistake])).rejects.toBe(error)
})

import { createPlantClient } from '@plant-store/client'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { startMemoryStore } from './memory-store.ts'
import { answer, busy, die, scripted, unavailable } from './scripted-store.ts'

// No random part of a wait is waited for.
beforeEach(() => void vi.spyOn(Math, 'random').mockReturnValue(0))
afterEach(() => void vi.restoreAllMocks())

const plant = (n: number, name = `plant ${n}`) => ({ id: BigInt(n), name })
const plants = (count: number) => Array.from({ length: count }, (_, n) => plant(n))
const counts = (created: number, existing = 0, refused = 0) => ({
  created,
  existing,
  refused,
})
const taken = (n: number) => ({
  index: n,
  error: 40003,
  message: `id ${n} is already taken`,
})

const done = answer(200, { ...counts(1), faults: [] })
/** An answer with the faults of the first lines. */
const refusing = (created: number, existing: number, refused: number, told: number) => {
  const faults = Array.from({ length: told }, (_, n) => ({
    line: n + 1,
    error: 40003,
    message: 'taken',
  }))
  return answer(200, { ...counts(created, existing, refused), faults })
}
const tooLarge = answer(413, { error: 41301, message: 'too large' })

test('many plants are created in few requests, and exist the second time', async () => {
  await using store = await startMemoryStore()
  let requests = 0
  const counting: typeof fetch = (...request) => {
    requests++
    return fetch(...request)
  }
  const client = createPlantClient({ ...store, fetch: counting })
  async function* stream() {
    yield* plants(5_001)
  }
  expect(await client.createMany(stream())).toEqual({ ...counts(5_001), faults: [] })
  expect(await client.createMany(plants(5_002))).toEqual({
    ...counts(1, 5_001),
    faults: [],
  })
  expect(await client.createMany([])).toEqual({ ...counts(0), faults: [] })
  expect(requests).toBe(4)
})

test('refused plants are faults with their index, the others are created', async () => {
  await using store = await startMemoryStore()
  const client = createPlantClient(store)
  await client.createMany([0, 3, 5_001].map(n => plant(n, 'another')))
  const all = plants(5_003).map(each => (each.id === 1n ? { ...each, name: '\0' } : each))
  const ofRules = { index: 1, error: 40002, message: 'name must not contain U+0000' }
  const faults = [taken(0), ofRules, taken(3), taken(5_001)]
  expect(await client.createMany(all)).toEqual({ ...counts(4_999, 0, 4), faults })
  await expect(client.read(1n)).rejects.toMatchObject({ status: 404 })
})

test('the first hundred faults are listed, and all are counted', async () => {
  await using store = await startMemoryStore()
  const client = createPlantClient(store)
  await client.createMany(plants(120))
  const all = plants(240).map((each, n) => ({
    ...each,
    name: n % 2 === 0 ? 'another' : '\0',
  }))
  const { faults, ...counted } = await client.createMany(all)
  expect(counted).toEqual(counts(60, 0, 180))
  expect(faults.map(({ index }) => index)).toEqual(
    Array.from({ length: 100 }, (_, n) => n),
  )
  expect(faults.slice(0, 2)).toMatchObject([taken(0), { error: 40002 }])
})

test('a part is full at 1 MiB', async () => {
  await using store = await scripted([done, done])
  const frame = '{"id":1,"name":""}'
  await store.client.createMany([plant(1, 'x'.repeat(2 ** 20 - frame.length)), plant(2)])
  expect(store.requests.map(({ body }) => body.length)).toEqual([
    2 ** 20,
    '{"id":2,"name":"plant 2"}'.length,
  ])
})

test('a plant above the body limit is refused, the others are created', async () => {
  await using store = await startMemoryStore()
  const client = createPlantClient(store)
  const all = plants(100).map((each, n) =>
    n === 42 ? { ...each, name: 'x'.repeat(1_100_000) } : each,
  )
  const { created, existing, refused, faults } = await client.createMany(all)
  expect([created + existing, refused]).toEqual([99, 1])
  expect(faults).toMatchObject([{ index: 42, error: 41301 }])
  expect((await client.list()).items).toHaveLength(99)
})

test('the counts and faults of both halves are those of the whole', async () => {
  await using store = await scripted([
    tooLarge,
    refusing(1, 2, 3, 1),
    refusing(10, 20, 30, 1),
  ])
  const { faults, ...counted } = await store.client.createMany(plants(66))
  expect(counted).toEqual(counts(11, 22, 33))
  expect(faults.map(({ index }) => index)).toEqual([0, 33])
})

test('a batch is repeated after a failure with an unknown outcome', async () => {
  await using store = await scripted([die, unavailable, busy(), done])
  expect(await store.client.createMany([plant(1)])).toMatchObject(counts(1))
  const bodies = store.requests.map(({ url, body }) => [url, body])
  expect(bodies).toEqual(Array(4).fill(['/plants/batch', '{"id":1,"name":"plant 1"}']))
})

test('a failure says that plants may have been created', async () => {
  const withoutCount = answer(200, { created: 1, existing: 0, faults: [] })
  await using store = await scripted([
    done,
    answer(401, { error: 40102, message: 'no' }),
    withoutCount,
  ])
  const failing = store.client.createMany(plants(5_001))
  await expect(failing).rejects.toMatchObject({ number: 40102, mayHaveChanged: true })
  const unreadable = { reason: 'unreadable-answer', mayHaveChanged: true }
  await expect(store.client.createMany([plant(1)])).rejects.toMatchObject(unreadable)
  expect(store.requests).toHaveLength(3)
})

test('what the plants come from fails it, and so does its signal', async () => {
  await using store = await scripted([done, done])
  const broken = new Error('no more')
  async function* failing() {
    yield* plants(5_000)
    throw broken
  }
  await expect(store.client.createMany(failing())).rejects.toBe(broken)
  const signal = AbortSignal.abort(new Error('stop'))
  await expect(store.client.createMany([plant(1)], { signal })).rejects.toThrow('stop')
  // Something else than a plant is not refused, but a mistake of the program.
  const mistake = {
    get id() {
      throw broken
    },
  }
  await expect(store.client.createMany([mistake as never])).rejects.toBe(broken)
})

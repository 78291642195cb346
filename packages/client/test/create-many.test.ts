import { setImmediate } from 'node:timers/promises'
import { type CreatedCounts, createPlantClient, type PlantClientOptions } from '@plant-store/client'
import { expect, onTestFinished, test } from 'vitest'
import { startMemoryStore } from './memory-store.ts'
import { answer, busy, die, draining, type Step, startScriptedStore, unavailable } from './scripted-store.ts'

const plant = (n: number, name = `plant ${n}`) => ({ id: BigInt(n), name })
const plants = (count: number) => Array.from({ length: count }, (_, n) => plant(n))
const counts = (created: number, existing = 0, refused = 0) => ({ created, existing, refused })
const taken = (n: number) => ({ index: n, error: 40003, message: `id ${n} is already taken` })

const done = answer(200, { ...counts(1), faults: [] })
/** With the faults of the first lines. */
const refusing = (created: number, existing: number, refused: number, told: number) => {
  const faults = Array.from({ length: told }, (_, n) => ({ line: n + 1, error: 40003, message: 'taken' }))
  return answer(200, { ...counts(created, existing, refused), faults })
}
const tooLarge = answer(413, { error: 41301, message: 'too large' })

async function scripted(script: readonly Step[], options: Partial<PlantClientOptions> = {}) {
  const store = await startScriptedStore(script)
  const client = createPlantClient({ baseUrl: store.baseUrl, token: 't', backOffMs: 1, ...options })
  return { ...store, client }
}

test('any number of plants are created in a few requests, and again they are there', async () => {
  await using store = await startMemoryStore()
  const client = createPlantClient(store)
  const progress: CreatedCounts[] = []
  const onProgress = (soFar: CreatedCounts) => void progress.push(soFar)
  async function* stream() {
    yield* plants(12_000)
  }
  expect(await client.createMany(stream(), { onProgress })).toEqual({ ...counts(12_000), faults: [] })
  expect(progress).toEqual([counts(5_000), counts(10_000), counts(12_000)])
  expect(await client.createMany(plants(12_001))).toEqual({ ...counts(1, 12_000), faults: [] })
  expect(await client.createMany([])).toEqual({ ...counts(0), faults: [] })
})

test('plants are announced unless told otherwise', async () => {
  const created = answer(200, { created: 1, existing: 0, refused: 0, faults: [] })
  await using store = await scripted([created, created, created])
  for (const announce of [undefined, true, false])
    await store.client.createMany([plant(1)], announce === undefined ? {} : { announce })
  expect(store.requests.map(({ url }) => url)).toEqual([
    '/plants/batch',
    '/plants/batch',
    '/plants/batch?announce=false',
  ])
})

test('long plants are spread over more requests', async () => {
  await using store = await startMemoryStore()
  const client = createPlantClient(store)
  const progress: CreatedCounts[] = []
  const long = Array.from({ length: 3 }, (_, n) => plant(n, 'x'.repeat(600_000)))
  await client.createMany(long, { onProgress: soFar => void progress.push(soFar) })
  expect(progress).toEqual([counts(2), counts(3)])
})

test('plants that the rules or the store refuse have their place in the whole, and the others are created', async () => {
  await using store = await startMemoryStore()
  const client = createPlantClient(store)
  await client.createMany([0, 3, 5_001].map(n => plant(n, 'another')))
  const all = plants(6_000).map(each => (each.id === 1n ? { ...each, name: '\0' } : each))
  expect(await client.createMany(all)).toEqual({
    ...counts(5_996, 0, 4),
    faults: [
      taken(0),
      { index: 1, error: 40002, message: 'name must not contain U+0000' },
      taken(3),
      taken(5_001),
    ],
  })
  await expect(client.read(1n)).rejects.toMatchObject({ status: 404 })
})

test('plants that the rules refuse are not sent, and fill a part too', async () => {
  await using store = await scripted([])
  const progress: CreatedCounts[] = []
  const onProgress = (soFar: CreatedCounts) => void progress.push(soFar)
  const invalid = plants(5_003).map(each => ({ ...each, name: '\0' }))
  const { faults } = await store.client.createMany(invalid, { onProgress, faultsMax: 2 })
  expect(faults.map(({ index }) => index)).toEqual([0, 1])
  expect(progress).toEqual([counts(0, 0, 5_000), counts(0, 0, 5_003)])
  expect(store.requests).toEqual([])
})

test('a part is full at 1 MiB', async () => {
  await using store = await scripted([done, done])
  const frame = '{"id":1,"name":""}'
  await store.client.createMany([plant(1, 'x'.repeat(2 ** 20 - frame.length)), plant(2)])
  expect(store.requests.map(({ body }) => body.length)).toEqual([2 ** 20, '{"id":2,"name":"plant 2"}'.length])
})

test('more faults than one answer holds are asked for, up to the wanted number', async () => {
  await using store = await startMemoryStore()
  const client = createPlantClient(store)
  const isTaken = (n: number) => n % 3 === 0
  await client.createMany(plants(1_000).filter((_, n) => isTaken(n)))
  const others = plants(1_000).map(each => ({ ...each, name: 'another' }))
  const faults = others.flatMap((_, n) => (isTaken(n) ? [taken(n)] : []))
  expect(faults).toHaveLength(334)
  for (const faultsMax of [undefined, 0, 1, 99, 101, 300, 334, 1_000]) {
    const created = await client.createMany(others, { faultsMax })
    expect(created.refused).toBe(334)
    expect(created.faults).toEqual(faults.slice(0, faultsMax ?? 100))
  }
})

test.each<[string, number, number, readonly Step[], number]>([
  ['as many as are wanted', 300, 100, [refusing(150, 0, 150, 100)], 100],
  ['no more than were counted', 300, 1_000, [refusing(150, 0, 150, 100), refusing(0, 50, 50, 50)], 150],
  ['of no line twice', 150, 1_000, [refusing(0, 0, 150, 100), refusing(0, 50, 0, 0)], 100],
  [
    'those of parts before included',
    5_150,
    100,
    [refusing(4_900, 0, 100, 100), refusing(0, 0, 150, 100)],
    100,
  ],
  [
    'those of the half before included',
    400,
    100,
    [tooLarge, refusing(95, 5, 100, 100), refusing(10, 40, 150, 100)],
    100,
  ],
])('faults are asked for: %s', async (_, count, faultsMax, script, told) => {
  await using store = await scripted(script)
  const { faults } = await store.client.createMany(plants(count), { faultsMax })
  expect(faults).toHaveLength(told)
  expect(store.requests).toHaveLength(script.length)
})

test('the counts of both halves are those of the whole', async () => {
  await using store = await scripted([tooLarge, refusing(1, 2, 3, 3), refusing(10, 20, 30, 30)])
  expect(await store.client.createMany(plants(66))).toMatchObject(counts(11, 22, 33))
})

test('a plant that is longer than the store takes is refused, and the others are created', async () => {
  await using store = await startMemoryStore()
  const client = createPlantClient(store)
  const all = plants(100).map((each, n) => (n === 42 ? { ...each, name: 'x'.repeat(1_100_000) } : each))
  const { created, existing, refused, faults } = await client.createMany(all)
  expect([created + existing, refused]).toEqual([99, 1])
  expect(faults).toMatchObject([{ index: 42, error: 41301 }])
  expect((await client.list()).plants).toHaveLength(99)
})

test.each<[string, Step]>([
  ['a connection that breaks', die],
  ['a busy store', busy()],
  ['a store that cannot be used', unavailable],
  ['a draining server', draining],
  ['a limit on requests', answer(429, { error: 42901, message: 'too many requests' })],
])('a request is sent again after %s', async (_name, fault) => {
  await using store = await scripted([fault, fault, done])
  expect(await store.client.createMany([plant(1)])).toMatchObject(counts(1))
  const bodies = store.requests.map(({ url, body }) => [url, body])
  expect(bodies).toEqual(Array(3).fill(['/plants/batch', '{"id":1,"name":"plant 1"}']))
})

test.each<[string, Step, object]>([
  ['a token that is not valid', answer(401, { error: 40102, message: 'no' }), { status: 401, number: 40102 }],
  [
    'an answer without a count',
    answer(200, { created: 1, existing: 0, faults: [] }),
    { reason: 'unreadable-answer' },
  ],
  [
    'a fault of a line that was not sent',
    answer(200, { ...counts(0, 0, 1), faults: [{ line: 2, error: 40002, message: '' }] }),
    { reason: 'unreadable-answer' },
  ],
])('it rejects with %s, and says that plants may have been created', async (_name, fault, error) => {
  await using store = await scripted([done, fault])
  const failing = store.client.createMany(plants(5_001))
  await expect(failing).rejects.toMatchObject({ ...error, mayHaveChanged: true })
  expect(store.requests).toHaveLength(2)
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
  const mistake = Object.defineProperty({}, 'id', {
    enumerable: true,
    get: () => {
      throw broken
    },
  })
  await expect(store.client.createMany([mistake as never])).rejects.toBe(broken)
})

test('a part that is refused while the next is made is thrown once, to who awaits it', async () => {
  const unhandled: unknown[] = []
  const note = (reason: unknown) => void unhandled.push(reason)
  process.on('unhandledRejection', note)
  onTestFinished(() => void process.off('unhandledRejection', note))
  const fetch = async () => Response.json({ error: 40102, message: 'no' }, { status: 401 })
  const client = createPlantClient({ baseUrl: 'http://plants.example', token: 't', fetch })
  async function* slow() {
    yield* plants(5_000)
    for (let turn = 0; turn < 20; turn++) await setImmediate()
    yield plant(5_000)
  }
  await expect(client.createMany(slow())).rejects.toMatchObject({ status: 401 })
  expect(unhandled).toEqual([])
})

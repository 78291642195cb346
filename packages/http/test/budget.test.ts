import { once } from 'node:events'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { assertFailure, assertSuccess, held, plantRequest, toJson } from '@plant-store/contract'
import type { Plant, PlantRepository } from '@plant-store/domain'
import { longPlant, plant } from '@plant-store/domain/testing'
import type { ServerLimits } from '@plant-store/http/server'
import { expect, test } from 'vitest'
import { createBudget } from '../src/budget.ts'
import { heapUsed } from './heap-used.ts'
import { startWithClient } from './memory-service.ts'

const mib = 2 ** 20

async function start(limits: Partial<ServerLimits>, plants: Partial<PlantRepository> = {}) {
  const service = await startWithClient({ plants, limits: { bodyBytesMax: 32 * mib, ...limits } })
  const { client, sockets, tokens } = service
  return {
    ...service,
    mostRead: () => Math.max(...sockets.map(socket => socket.bytesRead)),
    async create(plant: Plant) {
      const { id, ...answered } = plant
      assertSuccess(await client.post(toJson(plant)), answered)
    },
    /** A client that asks, and takes no more of the answer than its beginning. */
    async askWithoutReading(path: string) {
      const socket = service.connect()
      const fields = `host: h\r\nauthorization: Bearer ${tokens.full}\r\n`
      socket.write(`GET ${path} HTTP/1.1\r\n${fields}\r\n`)
      await once(socket, 'readable')
      return socket
    },
  }
}

test.each(['/plants/1', '/plants'])(
  'the answers to %s that nobody takes are bounded, and those after them are served again',
  async path => {
    await using store = await start({ heldBytesMax: 80 * mib })
    await store.create(longPlant(1n, 15 * mib))
    // Two are held, and a third would be one too many.
    const sockets = [await store.askWithoutReading(path), await store.askWithoutReading(path)]
    const refused = await store.client.ask('GET', path)
    assertFailure(refused, 50305)
    expect(refused.headers.get('retry-after')).toBe('1')
    // Bodies are counted apart, and short answers are not.
    await store.create(longPlant(3n, 15 * mib))
    await store.create(plant(4n, 'short'))
    expect((await store.client.ask('GET', '/plants/4')).status).toBe(200)
    expect((await store.client.ask('GET', '/plants?after=3')).status).toBe(200)

    for (const socket of sockets) socket.destroy()
    await expect.poll(async () => (await store.client.ask('GET', path)).status).toBe(200)
  },
)

test('an answer that was taken is held no longer, and one alone may be of any length', async () => {
  await using store = await start({ heldBytesMax: 1 })
  const long = longPlant(1n, mib)
  await store.create(long)
  for (let n = 0; n < 5; n++) assertSuccess(await store.client.ask('GET', '/plants/1'), long)
})

test.each([
  ['of a known length', (length: number) => `content-length: ${length}`, (piece: string) => piece],
  [
    'in chunks',
    () => 'transfer-encoding: chunked',
    (piece: string) => `${piece.length.toString(16)}\r\n${piece}\r\n`,
  ],
])('bodies %s that have not ended are bounded', async (_, field, framed) => {
  await using store = await start({ heldBytesMax: 16 * mib })
  const body = toJson(longPlant(1n, 3 * mib))
  const [beginning, rest] = [body.slice(0, -100), body.slice(-100)]
  const { client } = store
  using wire = await client.open()
  const head = plantRequest(client, '', ['transfer-encoding: chunked']).toString('latin1')
  wire.send(head.replace('transfer-encoding: chunked', field(body.length)), framed(beginning))
  await expect.poll(() => store.mostRead()).toBeGreaterThan(beginning.length)
  const other = toJson(longPlant(2n, 2 * mib))
  assertFailure(await client.post(other), 50305)
  await store.create(plant(3n, 'a short one'))
  wire.send(framed(rest), framed(''))
  expect((await wire.answer(client.asked('POST /plants'))).status).toBe(200)
  expect((await client.post(other)).status).toBe(200)
})

test('a body in pieces of one byte takes no more memory than one in a piece', async () => {
  await using store = await start({})
  const { client } = store
  using wire = await client.open()
  const before = heapUsed()
  const pieces = '1\r\n \r\n'.repeat(100_000)
  wire.send(plantRequest(client, '', ['transfer-encoding: chunked']), pieces)
  await expect.poll(() => store.mostRead()).toBeGreaterThan(pieces.length)
  expect(heapUsed() - before).toBeLessThan(5 * mib)
})

test('a page ends where its texts reach the bound, and Link goes on behind it', async () => {
  await using store = await start({ pageTextBytesMax: 1_000 })
  for (let id = 1n; id <= 7n; id++) await store.create(plant(id, '', 'é'.repeat(id === 4n ? 5_000 : 200)))
  const pages: bigint[][] = []
  for (let path: string | undefined = '/plants?limit=1000'; path !== undefined; ) {
    const answer = await store.client.ask('GET', path)
    expect(answer.status).toBe(200)
    pages.push((held(answer) as { id: bigint }[]).map(({ id }) => id))
    path = /<([^>]*)>/.exec(answer.headers.get('link') ?? '')?.[1]
  }
  expect(pages).toEqual([[1n, 2n, 3n], [4n], [5n, 6n, 7n], []])
})

test('a page is shorter while there is little room for it', async () => {
  await using store = await start({ heldBytesMax: 2 * mib })
  for (let id = 1n; id <= 5n; id++) await store.create(longPlant(id, 30_000))
  const whole = await store.client.ask('GET', '/plants')
  expect(whole.body.length).toBeGreaterThan(150_000)
  const sockets = [await store.askWithoutReading('/plants'), await store.askWithoutReading('/plants')]
  for (const socket of sockets) socket.destroy()
  await using narrow = await start({ heldBytesMax: 150_000 })
  for (let id = 1n; id <= 5n; id++) await narrow.create(longPlant(id, 30_000))
  const page = await narrow.client.ask('GET', '/plants')
  expect([page.status, page.headers.has('link')]).toEqual([200, true])
})

test('a body that was refused, and then broken, breaks nothing else', async () => {
  const letGo = Promise.withResolvers<void>()
  const page: PlantRepository['page'] = async () => {
    await letGo.promise
    return []
  }
  await using store = await start({ bodyBytesMax: 1_000 }, { page })
  const { client, tokens } = store
  using wire = await client.open()
  const head = (method: string, more: string) =>
    `${method} ${client.target('/plants')} HTTP/1.1\r\nhost: h\r\nauthorization: Bearer ${tokens.full}\r\n${more}\r\n`
  const body = `7d0\r\n${'x'.repeat(2_000)}\r\nno size\r\n`
  wire.send(
    head('GET', '') + head('POST', 'content-type: application/json\r\ntransfer-encoding: chunked\r\n') + body,
  )
  await expect.poll(() => store.mostRead()).toBeGreaterThan(body.length)
  letGo.resolve()
  expect((await wire.answer(client.asked('GET /plants'))).status).toBe(200)
  expect((await wire.answer(client.asked('POST /plants'))).status).toBeGreaterThanOrEqual(400)
  await store.create(plant(1n, 'still there'))
})

const newResponse = () => new ServerResponse(new IncomingMessage(new Socket()))

test('the limit may be reached, and what is released is free', () => {
  const budget = createBudget(10)
  const [one, other] = [newResponse(), newResponse()]
  budget.setHeld(one, 6)
  budget.setHeld(other, 4)
  expect(budget.free()).toBe(0)
  expect(() => budget.setHeld(other, 5)).toThrow('memory limit')
  budget.setHeld(one, 4)
  budget.setHeld(other, 6)
  expect(() => budget.setHeld(newResponse(), 1)).toThrow('memory limit')
  budget.setHeld(newResponse(), 0)
  budget.setHeld(one, 0)
  expect(budget.free()).toBe(4)
})

test('a request alone may hold any number, and others only once it holds less', () => {
  const budget = createBudget(10)
  const one = newResponse()
  budget.setHeld(one, 20)
  expect(budget.free()).toBe(0)
  expect(() => budget.setHeld(newResponse(), 1)).toThrow('memory limit')
  budget.setHeld(one, 9)
  budget.setHeld(newResponse(), 1)
})

test('a response that is closed holds nothing more, and is watched once', () => {
  const budget = createBudget(10)
  const one = newResponse()
  for (let bytes = 1; bytes <= 6; bytes++) budget.setHeld(one, bytes)
  expect(one.listenerCount('close')).toBe(1)
  one.emit('close')
  expect(budget.free()).toBe(10)
})

test('a response that has left or cannot leave any more holds nothing', () => {
  const budget = createBudget(10)
  const [finished, destroyed] = [newResponse(), newResponse()]
  Object.defineProperty(finished, 'writableFinished', { value: true })
  destroyed.destroy()
  for (const response of [finished, destroyed]) budget.setHeld(response, 10)
  expect(budget.free()).toBe(10)
})

test('bodies and answers up to 16 KiB are not counted', async () => {
  await using store = await start({ heldBytesMax: 380_000, pageTextBytesMax: 1_000 })
  const { client } = store
  const nameBytes = 16 * 1024 - toJson({ id: 2n, name: '' }).length
  await store.create(plant(2n, 'x'.repeat(nameBytes - 1)))
  await store.create(plant(3n, 'x'.repeat(nameBytes)))
  using wire = await client.open()
  const head = plantRequest(client, '').toString('latin1')
  wire.send(head.replace('content-length: 0', `content-length: ${mib}`), ' '.repeat(90_000))
  // Counted twice.
  await expect.poll(() => store.mostRead()).toBeGreaterThan(90_000)
  const post = (bytes: number) => client.post(toJson(plant(1n, 'n')).padEnd(bytes))
  expect((await post(16 * 1024)).status).toBe(200)
  assertFailure(await post(16 * 1024 + 1), 50305)
  for (const path of ['/plants/2', '/plants/3', '/plants?limit=1'])
    expect((await client.ask('GET', path)).status).toBe(200)
})

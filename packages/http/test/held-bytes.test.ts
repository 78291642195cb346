import { once } from 'node:events'
import { IncomingMessage, ServerResponse } from 'node:http'
import { connect, Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import {
  assertFailure,
  assertSuccess,
  createClient,
  createRecorder,
  held,
  plantRequest,
  toJson,
} from '@plant-store/contract'
import type { Plant, PlantRepository } from '@plant-store/domain'
import { longPlant, plant } from '@plant-store/domain/testing'
import { defaultServerLimits } from '@plant-store/http/server'
import { expect, test, vi } from 'vitest'
import { countHeldBytes, holdBody } from '../src/request/held-bytes.ts'
import { heapUsed } from './heap-used.ts'
import { startMemoryService } from './memory-service.ts'

const mib = 2 ** 20

async function start(
  limits: { bodyBytesMax?: number; heldBytesMax?: number; pageTextBytesMax?: number },
  plants: Partial<PlantRepository> = {},
) {
  const service = await startMemoryService({ plants, limits: { bodyBytesMax: 32 * mib, ...limits } })
  const client = createClient(service, createRecorder(await service.description()))
  const sockets: Socket[] = []
  service.server.server.on('connection', (socket: Socket) => sockets.push(socket))
  return {
    client,
    token: service.tokens.full,
    bytesRead: () => sockets.map(socket => socket.bytesRead),
    async create(plant: Plant) {
      const { id, ...answered } = plant
      assertSuccess(await client.ask('POST', '/plants', { body: toJson(plant) }), answered)
    },
    /** A client that asks, and takes no more of the answer than its beginning. */
    async askWithoutReading(path: string) {
      const { hostname, port } = new URL(service.url)
      const socket = connect({ host: hostname, port: Number(port) })
      const fields = `host: h\r\nauthorization: Bearer ${service.tokens.full}\r\n`
      socket.write(`GET ${path} HTTP/1.1\r\n${fields}\r\n`)
      await once(socket, 'readable')
      return socket
    },
    async [Symbol.asyncDispose]() {
      client.close()
      await service[Symbol.asyncDispose]()
    },
  }
}

test.each(['/plants/1', '/plants'])(
  'the answers to %s that nobody takes are bounded, and those after them are served again',
  async path => {
    await using store = await start({ heldBytesMax: 40 * mib })
    await store.create(longPlant(1n, 15 * mib))
    // Two are held, and a third would be one too many.
    const sockets = [await store.askWithoutReading(path), await store.askWithoutReading(path)]
    const refused = await store.client.ask('GET', path)
    assertFailure(refused, 50305)
    expect(refused.headers.get('retry-after')).toBe('1')
    const body = toJson(longPlant(3n, 15 * mib))
    assertFailure(await store.client.ask('POST', '/plants', { body }), 50305)

    for (const socket of sockets) socket.destroy()
    await expect.poll(async () => (await store.client.ask('GET', path)).status).toBe(200)
    assertFailure(await store.client.ask('GET', '/plants/3'), 40402)
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
  await using store = await start({ heldBytesMax: 8 * mib })
  const body = toJson(longPlant(1n, 3 * mib))
  const [beginning, rest] = [body.slice(0, -100), body.slice(-100)]
  const { client } = store
  using wire = await client.open()
  const head = plantRequest(client, '', [field(body.length)].concat()).toString('latin1')
  wire.send(head.replace('content-length: 0\r\n', ''), framed(beginning))
  await expect.poll(() => Math.max(...store.bytesRead())).toBeGreaterThan(beginning.length)
  const other = { body: toJson(longPlant(2n, 2 * mib)) }
  assertFailure(await client.ask('POST', '/plants', other), 50305)
  await store.create(plant(3n, 'a short one'))
  wire.send(framed(rest), framed(''))
  const answer = await wire.answer({ method: 'POST', target: client.target('/plants') })
  expect(answer.status).toBe(200)
  expect((await client.ask('POST', '/plants', other)).status).toBe(200)
})

test('a body in pieces of one byte takes no more memory than one in a piece', async () => {
  await using store = await start({})
  const { client } = store
  using wire = await client.open()
  const head = plantRequest(client, '', ['transfer-encoding: chunked']).toString('latin1')
  const before = heapUsed()
  const pieces = '1\r\n \r\n'.repeat(100_000)
  wire.send(head.replace('content-length: 0\r\n', ''), pieces)
  await expect.poll(() => Math.max(...store.bytesRead())).toBeGreaterThan(pieces.length)
  expect(heapUsed() - before).toBeLessThan(5 * mib)
})

test('bodies that nobody reads are not counted, and break no request', async () => {
  const letGo = Promise.withResolvers<void>()
  let begun = 0
  const page: PlantRepository['page'] = async () => {
    begun++
    await letGo.promise
    return []
  }
  await using store = await start({ heldBytesMax: mib }, { page })
  const { client, token } = store
  const asked = { method: 'GET', target: client.target('/plants') }
  const fields = ['host: h', `authorization: Bearer ${token}`, 'transfer-encoding: chunked']
  const head = `GET ${asked.target} HTTP/1.1\r\n${fields.join('\r\n')}\r\n\r\n`
  using one = await client.open()
  using other = await client.open()
  for (const wire of [one, other]) wire.send(head)
  await expect.poll(() => begun).toBe(2)
  const chunk = `${mib.toString(16)}\r\n${'x'.repeat(mib)}\r\n`
  for (const wire of [one, other]) wire.send(chunk, chunk, '0\r\n\r\n')
  await expect.poll(() => store.bytesRead().filter(bytes => bytes > 2 * head.length)).toHaveLength(2)
  letGo.resolve()
  for (const wire of [one, other]) expect((await wire.answer(asked)).status).toBe(200)
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

test('what may be long is not even read while there is no room for it', async () => {
  const read = vi.fn()
  const page = async () => read() ?? []
  const find = async () => read()
  await using store = await start({ heldBytesMax: mib, pageTextBytesMax: mib / 2 }, { page, find })
  const { client } = store
  using wire = await client.open()
  const head = plantRequest(client, '', [`content-length: ${mib}`]).toString('latin1')
  wire.send(head.replace('content-length: 0\r\n', ''), ' '.repeat(300_000))
  await expect.poll(() => Math.max(...store.bytesRead())).toBeGreaterThan(300_000)
  for (const path of ['/plants', '/plants/1']) assertFailure(await client.ask('GET', path), 50305)
  expect(read).not.toHaveBeenCalled()
})

test('a body that was refused, and then broken, breaks nothing else', async () => {
  const letGo = Promise.withResolvers<void>()
  const page: PlantRepository['page'] = async () => {
    await letGo.promise
    return []
  }
  await using store = await start({ bodyBytesMax: 1_000 }, { page })
  const { client, token } = store
  using wire = await client.open()
  const head = (method: string, more: string) =>
    `${method} ${client.target('/plants')} HTTP/1.1\r\nhost: h\r\nauthorization: Bearer ${token}\r\n${more}\r\n`
  const body = `7d0\r\n${'x'.repeat(2_000)}\r\nno size\r\n`
  wire.send(
    head('GET', '') + head('POST', 'content-type: application/json\r\ntransfer-encoding: chunked\r\n') + body,
  )
  await expect.poll(() => Math.max(...store.bytesRead())).toBeGreaterThan(body.length)
  letGo.resolve()
  expect((await wire.answer({ method: 'GET', target: client.target('/plants') })).status).toBe(200)
  expect(
    (await wire.answer({ method: 'POST', target: client.target('/plants') })).status,
  ).toBeGreaterThanOrEqual(400)
  await store.create(plant(1n, 'still there'))
})

test('what still comes of a body that was refused is not counted', () => {
  const request = new PassThrough() as unknown as IncomingMessage
  request.headers = { 'transfer-encoding': 'chunked' }
  const hold = () => {
    throw new Error('too much is held')
  }
  holdBody(request, {} as ServerResponse, { hold } as never)
  expect(() => request.emit('data', Buffer.alloc(100_000))).not.toThrow()
})

test('the reader of a body that is refused gets the error once', () => {
  const request = new PassThrough() as unknown as IncomingMessage
  request.headers = {}
  const failed = vi.fn()
  request.on('error', failed)
  const hold = () => {
    throw new Error('too much is held')
  }
  holdBody(request, {} as ServerResponse, { hold } as never)
  for (let n = 0; n < 2; n++) request.emit('data', Buffer.alloc(1))
  expect(failed).toHaveBeenCalledTimes(1)
})

const newResponse = () => new ServerResponse(new IncomingMessage(new Socket()))
const countTo = (heldBytesMax: number) =>
  countHeldBytes({ ...defaultServerLimits, heldBytesMax, pageTextBytesMax: 5 })

test('the limit may be reached, and what is released is free', () => {
  const held = countTo(10)
  const [one, other] = [newResponse(), newResponse()]
  held.hold(one, 6)
  held.hold(other, 4)
  expect(() => held.hold(other, 1)).toThrow('memory limit')
  held.release(one, 2)
  held.hold(other, 2)
  expect(() => held.hold(other, 1)).toThrow('memory limit')
  // Not more than it holds.
  held.release(other, 100)
  held.release(other, 100)
  held.release(newResponse(), 100)
  expect(() => held.hold(other, 7)).toThrow('memory limit')
  held.hold(other, 6)
})

test('a long answer needs room beside what others hold', () => {
  const held = countTo(10)
  held.hold(newResponse(), 5)
  held.checkRoom()
  held.hold(newResponse(), 1)
  expect(() => held.checkRoom()).toThrow('memory limit')
})

test.each(['finish', 'close'])(
  'at the event %s, a response holds nothing more, and is watched once',
  event => {
    const held = countTo(10)
    const [one, other] = [newResponse(), newResponse()]
    held.hold(other, 4)
    for (let n = 0; n < 6; n++) held.hold(one, 1)
    expect(one.listenerCount(event)).toBe(1)
    one.emit(event)
    held.hold(newResponse(), 6)
  },
)

test('a response that has left or cannot leave any more holds nothing', async () => {
  const held = countTo(10)
  const [finished, destroyed, other] = [newResponse(), newResponse(), newResponse()]
  Object.defineProperty(finished, 'writableFinished', { value: true })
  destroyed.destroy()
  for (const response of [finished, destroyed]) held.hold(response, 10)
  held.hold(other, 1)
  held.hold(newResponse(), 9)
})

test('bodies and answers below 16 KiB are not counted', async () => {
  await using store = await start({ heldBytesMax: 190_000, pageTextBytesMax: 1_000 })
  const { client } = store
  const nameBytes = 16 * 1024 - toJson({ id: 2n, name: '' }).length
  await store.create(plant(2n, 'x'.repeat(nameBytes - 1)))
  await store.create(plant(3n, 'x'.repeat(nameBytes)))
  using wire = await client.open()
  const head = plantRequest(client, '', [`content-length: ${mib}`]).toString('latin1')
  wire.send(head.replace('content-length: 0\r\n', ''), ' '.repeat(90_000))
  // Counted twice.
  await expect.poll(() => Math.max(...store.bytesRead())).toBeGreaterThan(90_000)
  const post = (bytes: number) =>
    client.ask('POST', '/plants', { body: toJson(plant(1n, 'n')).padEnd(bytes) })
  expect((await post(16 * 1024 - 1)).status).toBe(200)
  assertFailure(await post(16 * 1024), 50305)
  expect((await client.ask('GET', '/plants/2')).status).toBe(200)
  assertFailure(await client.ask('GET', '/plants/3'), 50305)
})

import { once } from 'node:events'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import {
  assertFailure,
  assertSuccess,
  chunk,
  plantRequest,
  toJson,
} from '@plant-store/contract'
import type { Version } from '@plant-store/domain'
import { longPlant, plant } from '@plant-store/domain/testing'
import { expect, test } from 'vitest'
import { createBudget } from '../src/wire/budget.ts'
import { type Service, startService } from './memory-service.ts'

const mib = 2 ** 20

/** A client that asks, and takes no more of the answer than its beginning. */
async function askWithoutReading(service: Service, path: string) {
  const socket = service.open()
  const fields = `host: h\r\nauthorization: Bearer ${service.tokens.full}\r\n`
  socket.write(`GET ${path} HTTP/1.1\r\n${fields}\r\n`)
  await once(socket, 'readable')
  return socket
}

/**
 * Resolves once the server has read this many bytes of the connection that was opened
 * last.
 */
const isRead = ({ sockets }: Service, bytes: number) =>
  expect.poll(() => sockets.at(-1)?.bytesRead).toBeGreaterThanOrEqual(bytes)

test.each(['/plants/1', '/plants'])(
  'unread answers to %s are limited until their clients leave',
  async path => {
    const long = longPlant(1n, 15 * mib)
    const find = async (id: bigint) => ({
      plant: id === 1n ? long : plant(id),
      version: '1' as Version,
    })
    const page = async ({ after }: { after?: bigint }) =>
      after === undefined ? [long] : []
    await using service = await startService({
      plants: { find, page },
      limits: { heldBytesMax: 80 * mib },
    })
    const { client } = service
    // Two are held, and a third would be one too many.
    const sockets = [
      await askWithoutReading(service, path),
      await askWithoutReading(service, path),
    ]
    const refused = await client.ask('GET', path)
    assertFailure(refused, 50305)
    expect(refused.headers.get('retry-after')).toBe('1')
    // Bodies are counted apart, and short answers are not.
    assertSuccess(
      await client.post(toJson({ id: 3n, name: 'n', more: 'x'.repeat(mib / 2) })),
      { name: 'n' },
    )
    expect((await client.ask('GET', '/plants/4')).status).toBe(200)
    expect((await client.ask('GET', '/plants?after=3')).status).toBe(200)

    for (const socket of sockets) {
      socket.destroy()
    }
    await expect.poll(async () => (await client.ask('HEAD', path)).status).toBe(200)
  },
)

test('bodies that have not ended are bounded', async () => {
  await using service = await startService({ limits: { heldBytesMax: 3 * mib } })
  const { client } = service
  const body = toJson(longPlant(1n, mib / 2))
  using wire = await client.open()
  const request = plantRequest(client, body)
  wire.send(request.subarray(0, -100))
  await isRead(service, request.length - 100)
  const other = toJson({ id: 2n, name: 'n', more: 'x'.repeat(mib / 2) })
  assertFailure(await client.post(other), 50305)
  assertSuccess(await client.post(toJson({ id: 3n, name: 'a short one' })), {
    name: 'a short one',
  })
  wire.send(request.subarray(-100))
  expect((await wire.answer(client.asked('POST /plants'))).status).toBe(200)
  expect((await client.post(other)).status).toBe(200)
})

test('a body in pieces of one byte takes no more memory than one in a piece', async () => {
  await using service = await startService()
  setFlagsFromString('--expose_gc')
  const collect = runInNewContext('gc')
  const heapUsed = () => {
    collect()
    return process.memoryUsage().heapUsed
  }
  using wire = await service.client.open()
  const before = heapUsed()
  const pieces = '1\r\n \r\n'.repeat(50_000)
  wire.send(plantRequest(service.client, '', ['transfer-encoding: chunked']), pieces)
  await isRead(service, pieces.length)
  expect(heapUsed() - before).toBeLessThan(5 * mib)
})

test('a page is shortened to the free memory, and frees it when read', async () => {
  await using service = await startService({ limits: { heldBytesMax: 150_000 } })
  for (let id = 1n; id <= 5n; id++) {
    await service.plants.insert(longPlant(id, 20_000))
  }
  for (const _ of ['once', 'again']) {
    const page = await service.client.ask('GET', '/plants')
    expect([page.status, page.headers.has('link')]).toEqual([200, true])
  }
})

test('a body that was refused, and then broken, breaks nothing else', async () => {
  const letGo = Promise.withResolvers<void>()
  const page = async () => {
    await letGo.promise
    return []
  }
  await using service = await startService({
    plants: { page },
    limits: { bodyBytesMax: 1_000 },
  })
  const { client, tokens } = service
  using wire = await client.open()
  const head = (method: string, more: string) =>
    `${method} /plants HTTP/1.1\r\nhost: h\r\nauthorization: Bearer ${tokens.full}\r\n${more}\r\n`
  const body = `${chunk('x'.repeat(2_000))}no size\r\n`
  wire.send(
    head('GET', '') +
      head('POST', 'content-type: application/json\r\ntransfer-encoding: chunked\r\n') +
      body,
  )
  await isRead(service, body.length)
  letGo.resolve()
  expect((await wire.answer(client.asked('GET /plants'))).status).toBe(200)
  expect((await wire.answer(client.asked('POST /plants'))).status).toBeGreaterThanOrEqual(
    400,
  )
  expect((await client.ask('GET', '/healthz')).status).toBe(200)
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

test('a single request may exceed the limit, and then no other holds any', () => {
  const budget = createBudget(10)
  const one = newResponse()
  budget.setHeld(one, 20)
  expect(budget.free()).toBe(0)
  expect(() => budget.setHeld(newResponse(), 1)).toThrow('memory limit')
  budget.setHeld(one, 9)
  budget.setHeld(newResponse(), 1)
})

test('a closed, finished or destroyed response holds nothing', () => {
  const budget = createBudget(10)
  const [one, finished, destroyed] = [newResponse(), newResponse(), newResponse()]
  for (let bytes = 1; bytes <= 6; bytes++) {
    budget.setHeld(one, bytes)
  }
  expect(one.listenerCount('close')).toBe(1)
  one.emit('close')
  Object.defineProperty(finished, 'writableFinished', { value: true })
  destroyed.destroy()
  for (const response of [finished, destroyed]) {
    budget.setHeld(response, 10)
  }
  expect(budget.free()).toBe(10)
})

test('bodies and answers up to 16 KiB are not counted', async () => {
  await using service = await startService({
    limits: { heldBytesMax: 380_000, pageTextBytesMax: 1_000 },
  })
  const { client } = service
  const nameBytes = 16 * 1024 - toJson({ id: 2n, name: '' }).length
  await service.plants.insert(plant(2n, 'x'.repeat(nameBytes - 1)))
  await service.plants.insert(plant(3n, 'x'.repeat(nameBytes)))
  using wire = await client.open()
  const head = `${plantRequest(client, '')}`
  wire.send(
    head.replace('content-length: 0', `content-length: ${mib}`),
    ' '.repeat(90_000),
  )
  // Counted twice.
  await isRead(service, 90_000)
  const post = (bytes: number) => client.post(toJson({ id: 1n, name: 'n' }).padEnd(bytes))
  expect((await post(16 * 1024)).status).toBe(200)
  assertFailure(await post(16 * 1024 + 1), 50305)
  for (const path of ['/plants/2', '/plants/3', '/plants?limit=1']) {
    expect((await client.ask('GET', path)).status).toBe(200)
  }
})

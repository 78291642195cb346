import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { longPlant } from '@plant-store/domain/testing'
import {
  assertFailure,
  assertSuccess,
  plantRequest,
  toJson,
} from '@plant-store/http/testing'
import { expect, test } from 'vitest'
import { createBudget } from '../src/wire/budget.ts'
import { askWithoutReading, type Service, startService } from './memory-service.ts'

const mib = 2 ** 20

/**
 * Resolves once the server has read this many bytes of the connection that was opened
 * last.
 */
const isRead = ({ sockets }: Service, bytes: number) =>
  expect.poll(() => sockets.at(-1)?.bytesRead).toBeGreaterThanOrEqual(bytes)

test('unread answers are limited until their clients leave', async () => {
  const long = longPlant(1n, 6 * mib)
  const page = async ({ after }: { after?: bigint }) =>
    after === undefined ? [long] : []
  await using service = await startService({
    plants: { page },
    limits: { heldBytesMax: 32 * mib },
  })
  const { client } = service
  // The memory holds two of these answers, but not a third.
  await askWithoutReading(service, '/plants')
  await askWithoutReading(service, '/plants')
  const refused = await client.ask('GET', '/plants')
  // Bodies are counted apart, and short answers are not.
  const longBody = toJson({ id: 3n, name: 'n', more: 'x'.repeat(mib / 2) })
  const created = await client.post(longBody)
  const short = await client.ask('GET', '/plants?after=3')

  assertFailure(refused, 50305)
  assertSuccess(created, { name: 'n' })
  expect(short.status).toBe(200)

  service.destroyClients()
  const hasLeft = ({ destroyed }: Socket) => destroyed
  await expect.poll(() => service.sockets.filter(hasLeft)).toHaveLength(2)
  const head = await client.ask('HEAD', '/plants')
  expect(head.status).toBe(200)
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
  const bytesBefore = heapUsed()

  const pieces = '1\r\n \r\n'.repeat(20_000)
  wire.send(plantRequest(service.client, '', ['transfer-encoding: chunked']), pieces)
  await isRead(service, pieces.length)

  const addedBytes = heapUsed() - bytesBefore
  expect(addedBytes).toBeLessThan(5 * mib)
})

test('a page is shortened to the free memory, and frees it when read', async () => {
  await using service = await startService({ limits: { heldBytesMax: 150_000 } })
  for (let id = 1n; id <= 5n; id++) {
    await service.plants.insert(longPlant(id, 20_000))
  }

  for (const time of ['first', 'second']) {
    const { status, headers } = await service.client.ask('GET', '/plants')
    expect(status, `the ${time} time`).toBe(200)
    expect(headers.has('link'), `more follow the ${time} time`).toBe(true)
  }
})

const newResponse = () => new ServerResponse(new IncomingMessage(new Socket()))

test('the limit may be reached, and what is released is free', () => {
  const budget = createBudget(10)
  const one = newResponse()
  const other = newResponse()

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

  // A single request may exceed it, and then no other holds any.
  budget.setHeld(other, 0)
  budget.setHeld(one, 20)
  expect(budget.free()).toBe(0)
  expect(() => budget.setHeld(other, 1)).toThrow('memory limit')
})

test('a closed, finished or destroyed response holds nothing', () => {
  const budget = createBudget(10)
  const closed = newResponse()
  const finished = newResponse()
  const destroyed = newResponse()

  for (let bytes = 1; bytes <= 6; bytes++) {
    budget.setHeld(closed, bytes)
  }
  expect(closed.listenerCount('close'), 'listeners of six calls').toBe(1)

  closed.emit('close')
  Object.defineProperty(finished, 'writableFinished', { value: true })
  budget.setHeld(finished, 10)
  destroyed.destroy()
  budget.setHeld(destroyed, 10)
  expect(budget.free()).toBe(10)
})

test('bodies up to 16 KiB are not counted', async () => {
  await using service = await startService({ limits: { heldBytesMax: 380_000 } })
  const { client } = service
  using wire = await client.open()
  const emptyRequest = `${plantRequest(client, '')}`
  const head = emptyRequest.replace('content-length: 0', `content-length: ${mib}`)
  // These bytes are counted twice.
  wire.send(head, ' '.repeat(90_000))
  await isRead(service, 90_000)

  const body = toJson({ id: 1n, name: 'n' })
  const uncounted = await client.post(body.padEnd(16 * 1024))
  const counted = await client.post(body.padEnd(16 * 1024 + 1))

  expect(uncounted.status).toBe(200)
  assertFailure(counted, 50305)
})

test('a full memory refuses answers from 16 KiB on, and no shorter ones', async () => {
  await using service = await startService({ limits: { heldBytesMax: 12 * mib } })
  const { client, plants } = service
  const tagBytes = 16 * 1024 - toJson(longPlant(2n, 0)).length
  await plants.insert(longPlant(1n, 6 * mib))
  await plants.insert(longPlant(2n, tagBytes))
  await plants.insert(longPlant(3n, tagBytes - 1))
  await askWithoutReading(service, '/plants/1')

  const counted = await client.ask('GET', '/plants/2')
  const uncounted = await client.ask('GET', '/plants/3')

  assertFailure(counted, 50305)
  expect(uncounted.status).toBe(200)
})

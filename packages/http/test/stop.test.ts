import { once } from 'node:events'
import { assertFailure, assertSuccess, plantRequest } from '@plant-store/contract'
import type { Version } from '@plant-store/domain'
import { longPlant } from '@plant-store/domain/testing'
import { stopListening, stopServer } from '@plant-store/http/server'
import { expect, test } from 'vitest'
import { connectionsOf } from '../src/wire/node-server.ts'
import { heldInserts, startService } from './memory-service.ts'

const request = 'GET /healthz HTTP/1.1\r\nhost: h\r\n\r\n'
const asked = { method: 'GET', target: '/healthz' }
const mib = 2 ** 20

test('an idle connection stays open a while for a request on its way', async () => {
  const { plants, begun, letGo } = heldInserts()
  await using service = await startService({ plants })
  const { client } = service
  using busy = await client.open()
  busy.send(plantRequest(client, '{"id":1,"name":"n"}'))
  await begun
  using silent = await client.open()
  using idle = await client.open()
  using late = await client.open()
  for (const wire of [idle, late]) {
    wire.send(request)
    assertSuccess(await wire.answer(asked), { status: 'ok' })
  }
  const beganAt = performance.now()
  const stopped = stopServer(service.app, 60_000)
  assertFailure(await client.ask('GET', '/readyz', { token: null }), 50303)
  late.send(request)
  expect((await late.answer(asked)).headers.get('connection')).toBe('close')
  for (const wire of [silent, idle]) {
    expect(await wire.closed()).toHaveLength(0)
  }
  expect(performance.now() - beganAt).toBeGreaterThan(450)
  letGo()
  const answer = await busy.answer({ method: 'POST', target: '/plants' })
  expect(answer.headers.get('connection')).toBe('close')
  expect(await stopped).toBe(0)
})

test('connections in the backlog are served when listening has stopped', async () => {
  await using service = await startService()
  const sockets = Array.from({ length: 50 }, () => service.open())
  await Promise.all(sockets.map(socket => once(socket, 'connect')))
  // Node accepts one in each turn of its loop.
  expect(connectionsOf(service.app.server).size).toBeLessThan(sockets.length)
  await stopListening(service.app.server)
  for (const socket of sockets) {
    socket.write(request)
  }
  for (const [answer] of await Promise.all(sockets.map(socket => once(socket, 'data')))) {
    expect(`${answer}`).toMatch(/^HTTP\/1\.1 200 /)
  }
})

test('a stop waits for a slow reader, and hardly for one that reads nothing', async () => {
  const find = async () => ({ plant: longPlant(1n, 8 * mib), version: '1' as Version })
  await using service = await startService({ plants: { find } })
  const [slow, silent] = [service.open(), service.open()]
  for (const socket of [slow, silent]) {
    socket.write(
      `GET /plants/1 HTTP/1.1\r\nhost: h\r\nauthorization: Bearer ${service.tokens.full}\r\n\r\n`,
    )
    await once(socket, 'readable')
  }
  const beganAt = performance.now()
  const stopped = stopServer(service.app, 60_000)
  let bytes = 0
  for await (const chunk of slow) {
    bytes += chunk.length
    await new Promise(resolve => setTimeout(resolve, 1))
  }
  expect(bytes).toBeGreaterThan(8 * mib)
  expect(await stopped).toBe(0)
  expect(performance.now() - beganAt).toBeLessThan(10_000)
  silent.destroy()
})

test('a stop out of time cuts the rest and counts whole requests', async () => {
  const { plants, begun, letGo } = heldInserts()
  await using service = await startService({ plants })
  const { client } = service
  const connections = connectionsOf(service.app.server)
  const post = plantRequest(client, '{"id":1,"name":"n"}')
  using whole = await client.open()
  whole.send(post)
  await begun
  using half = await client.open()
  half.send(post.subarray(0, -1))
  const received = () =>
    [...connections.values()].filter(({ current }) => current !== undefined)
  await expect.poll(received).toHaveLength(2)
  expect(await stopServer(service.app, 700)).toBe(1)
  for (const wire of [whole, half]) {
    expect(await wire.closed()).toHaveLength(0)
  }
  letGo()
})

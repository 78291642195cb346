import { once } from 'node:events'
import type { Socket } from 'node:net'
import { longPlant } from '@plant-store/domain/testing'
import { stopListening, stopServer } from '@plant-store/http/server'
import { assertFailure, assertSuccess, plantRequest } from '@plant-store/http/testing'
import { expect, test } from 'vitest'
import { connectionsOf } from '../src/wire/node-server.ts'
import { prepareStop } from '../src/wire/stop.ts'
import {
  askWithoutReading,
  pausedInserts,
  startService,
  versioned,
} from './memory-service.ts'

const request = 'GET /healthz HTTP/1.1\r\nhost: h\r\n\r\n'
const healthRequest = { method: 'GET', target: '/healthz' }
const mib = 2 ** 20

test('an idle connection stays open a while for a request on its way', async () => {
  const { plants, begun, resume } = pausedInserts()
  await using service = await startService({ plants })
  const { client } = service
  using busy = await client.open()
  busy.send(plantRequest(client, '{"id":1,"name":"n"}'))
  await begun
  busy.send(request)
  using silent = await client.open()
  using idle = await client.open()
  using probe = await client.open()
  using late = await client.open()
  idle.send(request)
  assertSuccess(await idle.answer(healthRequest), { status: 'ok' })
  late.send(request)
  assertSuccess(await late.answer(healthRequest), { status: 'ok' })

  const beganAt = performance.now()
  const stopped = stopServer(service.app, 60_000)
  // Send both now, because a busy machine may need the whole grace for one answer.
  probe.send('GET /readyz HTTP/1.1\r\nhost: h\r\n\r\n')
  late.send(request)
  const readiness = await probe.answer({ method: 'GET', target: '/readyz' })
  const lateAnswer = await late.answer(healthRequest)
  const silentBytes = await silent.closed()
  const idleBytes = await idle.closed()
  const idleMs = performance.now() - beganAt
  resume()
  const busyAnswer = await busy.answer({ method: 'POST', target: '/plants' })

  assertFailure(readiness, 50303)
  expect(lateAnswer.headers.get('connection')).toBe('close')
  expect(silentBytes).toHaveLength(0)
  expect(idleBytes).toHaveLength(0)
  expect(idleMs).toBeGreaterThan(450)
  expect(busyAnswer.headers.get('connection')).toBe('close')
  expect(await busy.closed(), 'what is pipelined behind it').toHaveLength(0)
  expect(await stopped).toBe(0)
})

test('a request that waits for a busy thread is answered in a stop', async () => {
  await using service = await startService()
  const { server } = service.app
  using client = await service.client.open()
  client.send(request)
  assertSuccess(await client.answer(healthRequest), { status: 'ok' })

  const prepared = prepareStop(server)
  client.send(request)
  // Wait until the grace is over.
  const busyUntil = performance.now() + 600
  while (performance.now() < busyUntil) {}
  await prepared
  server.closeIdleConnections()
  const answer = await client.answer(healthRequest)

  assertSuccess(answer, { status: 'ok' })
})

test('connections in the backlog are served when listening has stopped', async () => {
  await using service = await startService()
  const sockets = Array.from({ length: 50 }, () => service.open())
  await Promise.all(sockets.map(socket => once(socket, 'connect')))
  await stopListening(service.app.server)
  const answered = sockets.map(socket => once(socket, 'data'))
  for (const socket of sockets) {
    socket.write(request)
  }
  const answers = await Promise.all(answered)

  const statusLines = answers.map(([answer]) => `${answer}`.split('\r\n')[0])
  expect(statusLines).toEqual(Array(sockets.length).fill('HTTP/1.1 200 OK'))
})

test('a stop waits for a client that reads, and hardly for a silent one', async () => {
  const find = async () => versioned(longPlant(1n, 8 * mib))
  await using service = await startService({ plants: { find } })
  await askWithoutReading(service, '/plants/1')
  const reader = await askWithoutReading(service, '/plants/1')

  const beganAt = performance.now()
  const stopped = stopServer(service.app, 60_000)
  const bytes = await readSlowly(reader)
  const unanswered = await stopped
  const stopMs = performance.now() - beganAt

  expect(bytes).toBeGreaterThan(8 * mib)
  expect(unanswered).toBe(0)
  expect(stopMs).toBeLessThan(30_000)
})

/** Reads some 3 MiB a second to the end, and returns the number of bytes. */
async function readSlowly(socket: Socket): Promise<number> {
  let bytes = 0
  const reading = setInterval(() => {
    bytes += socket.read()?.length ?? 0
  }, 20)
  await once(socket, 'close')
  clearInterval(reading)
  return bytes
}

test('a stop out of time cuts the rest and counts whole requests', async () => {
  const { plants, begun, resume } = pausedInserts()
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

  const unanswered = await stopServer(service.app, 700)
  const bytesOfWhole = await whole.closed()
  const bytesOfHalf = await half.closed()

  expect(unanswered).toBe(1)
  expect(bytesOfWhole).toHaveLength(0)
  expect(bytesOfHalf).toHaveLength(0)
  resume()
})

import { once } from 'node:events'
import { assertSuccess } from '@plant-store/contract'
import { longPlant } from '@plant-store/domain/testing'
import { stopServer } from '@plant-store/http/server'
import { expect, test } from 'vitest'
import { startWithClient } from './memory-service.ts'

const readMs = 10

/** A service whose pages hold its thread, and clients that have asked for many of them. */
async function startBusy(limits = {}) {
  let reads = 0
  const begun = Promise.withResolvers<void>()
  const page = async () => {
    reads++
    begun.resolve()
    const endAt = performance.now() + readMs
    while (performance.now() < endAt);
    return [longPlant(1n, 10)]
  }
  const service = await startWithClient({ plants: { page }, limits })
  const request = `GET /plants HTTP/1.1\r\nhost: h\r\nauthorization: Bearer ${service.tokens.full}\r\n\r\n`
  const sockets = Array.from({ length: 100 }, () => service.connect())
  await Promise.all(sockets.map(socket => once(socket, 'connect')))
  for (const socket of sockets) socket.write(request)
  await begun.promise
  return { service, sockets, reads: () => reads }
}

test('new connections are answered between long pages', async () => {
  const { service, sockets, reads } = await startBusy()
  await using _service = service
  for (let n = 0; n < 5; n++) {
    using wire = await service.client.open()
    wire.send('GET /healthz HTTP/1.1\r\nhost: h\r\n\r\n')
    assertSuccess(await wire.answer({ method: 'GET', target: '/healthz' }), { status: 'ok' })
  }
  expect(reads()).toBeLessThan(sockets.length / 2)
  for (const socket of sockets) socket.destroy()
})

test('pages that wait for long when the server stops are told so', async () => {
  const { service, sockets, reads } = await startBusy({ batchRequestDrainMs: 100 })
  await using _service = service
  const answers = sockets.map(async socket => `${(await once(socket, 'data'))[0]}`.slice(9, 12))
  expect(await stopServer(service.server, 60_000)).toBe(0)
  const statuses = await Promise.all(answers)
  expect(statuses.filter(status => status === '200')).toHaveLength(reads())
  expect(statuses.filter(status => status === '503')).toHaveLength(sockets.length - reads())
  expect(reads()).toBeLessThan(sockets.length)
})

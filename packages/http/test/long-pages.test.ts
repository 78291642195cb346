import { held } from '@plant-store/contract'
import { longPlant } from '@plant-store/domain/testing'
import { stopServer } from '@plant-store/http/server'
import { expect, test } from 'vitest'
import { connectionsOf } from '../src/wire/node-server.ts'
import { getRequest, startService } from './memory-service.ts'

test('new connections are served between long pages, and a stop ends them', async () => {
  let reads = 0
  const page = async () => {
    reads++
    const endAt = performance.now() + 20
    while (performance.now() < endAt) {}
    return [longPlant(1n, 10)]
  }
  await using service = await startService({
    plants: { page },
    limits: { batchRequestDrainMs: 100 },
  })
  const { client } = service
  const count = 60
  const wires = await Promise.all(Array.from({ length: count }, () => client.open()))
  for (const wire of wires) {
    wire.send(getRequest(service, '/plants'))
  }
  // A connection whose request is not received when the server closes gets no answer.
  const connections = connectionsOf(service.app.server)
  const received = () => [...connections.values()].filter(({ current }) => current)
  await expect
    .poll(() => received().length + service.answered.length)
    .toBeGreaterThanOrEqual(count)

  const liveness: unknown[] = []
  for (let n = 0; n < 5; n++) {
    using wire = await client.open()
    wire.send('GET /healthz HTTP/1.1\r\nhost: h\r\n\r\n')
    const answer = await wire.answer({ method: 'GET', target: '/healthz' })
    liveness.push([answer.status, held(answer)])
  }
  expect(liveness).toEqual(Array(5).fill([200, { status: 'ok' }]))
  expect(reads).toBeLessThan(count / 2)

  const [unanswered, ...answers] = await Promise.all([
    stopServer(service.app, 60_000),
    ...wires.map(wire => wire.answer(client.asked('GET /plants'))),
  ])
  expect(unanswered).toBe(0)
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(reads)
  expect(answers.filter(({ status }) => status === 503)).toHaveLength(count - reads)
  expect(reads).toBeLessThan(count)
})

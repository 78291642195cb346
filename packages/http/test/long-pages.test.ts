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
  const opening = Array.from({ length: count }, () => client.open())
  const wires = await Promise.all(opening)
  for (const wire of wires) {
    wire.send(getRequest(service, '/plants'))
  }
  // A connection whose request is not received when the server closes gets no answer.
  const connections = connectionsOf(service.app.server)
  const countReceived = () => {
    const current = [...connections.values()].filter(({ current }) => current)
    return current.length + service.answered.length
  }
  await expect.poll(countReceived).toBeGreaterThanOrEqual(count)

  const liveness: string[] = []
  for (let n = 0; n < 5; n++) {
    using wire = await client.open()
    wire.send('GET /healthz HTTP/1.1\r\nhost: h\r\n\r\n')
    const answer = await wire.answer({ method: 'GET', target: '/healthz' })
    liveness.push(`${answer.status} ${answer.body}`)
  }
  expect(liveness).toEqual(Array(5).fill('200 {"status":"ok"}'))
  expect(reads).toBeLessThan(count / 2)

  const [unanswered, ...answers] = await Promise.all([
    stopServer(service.app, 60_000),
    ...wires.map(wire => wire.answer(client.asked('GET /plants'))),
  ])
  const statuses = answers.map(({ status }) => status)
  const refused = Array(count - reads).fill(503)
  expect(unanswered).toBe(0)
  expect(statuses.sort()).toEqual([...Array(reads).fill(200), ...refused])
  expect(reads).toBeLessThan(count)
})

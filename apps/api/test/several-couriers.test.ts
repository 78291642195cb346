import { type Server, startServer, until } from '@plant-store/harness'
import { expect, test } from 'vitest'
import { ask } from './ask.ts'
import { prepareDatabase } from './database.ts'
import { type Listener, listen } from './listener.ts'

test('several processes share the webhooks, and never deliver to one at the same time', async () => {
  await using database = await prepareDatabase()
  const listeners: Listener[] = []
  let together = 0
  await using stack = new AsyncDisposableStack()
  for (let n = 0; n < 4; n++) {
    let underWay = 0
    const listener = await listen(database.url, async (_, __, response) => {
      if (++underWay > 1) together++
      await new Promise(setImmediate)
      underWay--
      response.end()
    })
    listeners.push(stack.use(listener))
  }
  const servers = await Promise.all([1, 2].map(() => startServer({ databaseUrl: database.url })))
  for (const server of servers) stack.use(server)
  const { full, metrics } = database.tokens
  const headers = { 'content-type': 'application/x-ndjson' }
  const deliverToo = async (server: Server) =>
    /^plant_store_deliveries_total.* [1-9]/m.test(
      (await ask(server, 'GET /metrics', { token: metrics })).text,
    )
  let plants = 0
  // On a busy machine, one of them may start to deliver much later than the other.
  while (plants < 1_000 || (await Promise.all(servers.map(deliverToo))).includes(false)) {
    const body = Array.from({ length: 100 }, (_, n) => `{"id":${plants + n},"name":"n"}\n`).join('')
    const server = servers[(plants / 100) % 2] as Server
    expect((await ask(server, 'POST /plants/batch', { token: full, headers, body })).status).toBe(200)
    plants += 100
  }
  await until('all are delivered', () => listeners.every(({ received }) => received.length >= plants))
  expect(together).toBe(0)
  for (const { received, refused } of listeners) {
    expect(refused).toEqual([])
    expect(received).toEqual(Array.from({ length: plants }, (_, id) => BigInt(id)))
  }
})

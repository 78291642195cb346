import { type Server, startServer, until } from '@plant-store/harness'
import { expect, test } from 'vitest'
import { ask } from './ask.ts'
import { prepareDatabase } from './database.ts'
import { type Listener, listen } from './listener.ts'

test('several processes never deliver to one webhook at the same time', async () => {
  await using database = await prepareDatabase()
  const listeners: Listener[] = []
  let together = 0
  await using stack = new AsyncDisposableStack()
  for (let n = 0; n < 4; n++) {
    let underWay = 0
    const listener = await listen(database.url, async (_, __, response) => {
      if (++underWay > 1) {
        together++
      }
      await new Promise(setImmediate)
      underWay--
      response.end()
    })
    listeners.push(stack.use(listener))
  }
  const servers = await Promise.all(
    [1, 2].map(() => startServer({ databaseUrl: database.url })),
  )
  for (const server of servers) {
    stack.use(server)
  }
  const { full, metrics } = database.tokens
  const headers = { 'content-type': 'application/x-ndjson' }
  const deliverToo = async (server: Server) =>
    /^plant_store_deliveries_total.* [1-9]/m.test(
      (await ask(server, 'GET /metrics', { token: metrics })).text,
    )
  let plants = 0
  let turn = 0
  const add = async (count: number) => {
    const body = Array.from(
      { length: count },
      (_, n) => `{"id":${plants + n},"name":"n"}\n`,
    ).join('')
    const server = servers[turn++ % 2] as Server
    expect(
      (await ask(server, 'POST /plants/batch', { token: full, headers, body })).status,
    ).toBe(200)
    plants += count
  }
  const allDelivered = () =>
    until('all are delivered', () =>
      listeners.every(({ received }) => received.length >= plants),
    )
  // The process that looks first delivers, and then the other one may.
  while ((await Promise.all(servers.map(deliverToo))).includes(false)) {
    await add(1)
    await allDelivered()
  }
  // While one delivers all of these, the other looks for some twice a second.
  for (let batch = 0; batch < 2; batch++) {
    await add(100)
  }
  await allDelivered()
  expect(together).toBe(0)
  for (const { received, refused } of listeners) {
    expect(refused).toEqual([])
    expect(received).toEqual(Array.from({ length: plants }, (_, id) => BigInt(id)))
  }
})

import { type Server, startServer, until } from '@plant-store/harness'
import { expect, test } from 'vitest'
import { ask } from './ask.ts'
import { prepareDatabase } from './database.ts'
import { type Listener, listen } from './listener.ts'

test('several processes never deliver to one webhook at the same time', async () => {
  await using database = await prepareDatabase()
  const listeners: Listener[] = []
  let simultaneousRequests = 0
  await using stack = new AsyncDisposableStack()
  for (let n = 0; n < 4; n++) {
    let underWay = 0
    const listener = await listen(database.url, async (_, __, response) => {
      if (++underWay > 1) {
        simultaneousRequests++
      }
      await new Promise(setImmediate)
      underWay--
      response.end()
    })
    listeners.push(stack.use(listener))
  }
  const start = () => startServer({ databaseUrl: database.url })
  const [first, second] = await Promise.all([start(), start()])
  const servers = [stack.use(first), stack.use(second)]
  const { full, metrics } = database.tokens
  const headers = { 'content-type': 'application/x-ndjson' }
  const hasDelivered = async (server: Server) => {
    const { text } = await ask(server, 'GET /metrics', { token: metrics })
    return /^plant_store_deliveries_total.* [1-9]/m.test(text)
  }
  const ids: bigint[] = []
  const add = async (server: Server, count: number) => {
    const newIds = Array.from({ length: count }, (_, n) => BigInt(ids.length + n))
    const body = newIds.map(id => `{"id":${id},"name":"n"}\n`).join('')
    const answer = await ask(server, 'POST /plants/batch', { token: full, headers, body })
    expect(answer.status, answer.text).toBe(200)
    ids.push(...newIds)
  }
  const allDelivered = () =>
    until('all are delivered', () =>
      listeners.every(({ received }) => received.length >= ids.length),
    )
  // The process that looks first delivers, and then the other one may.
  while ((await Promise.all(servers.map(hasDelivered))).includes(false)) {
    await add(first, 1)
    await allDelivered()
    await add(second, 1)
    await allDelivered()
  }
  // While one delivers all of these, the other looks for some twice a second.
  await add(first, 100)
  await add(second, 100)
  await allDelivered()
  expect(simultaneousRequests).toBe(0)
  for (const { url, received, refused } of listeners) {
    expect(refused, url).toEqual([])
    expect(received, url).toEqual(ids)
  }
})

import assert from 'node:assert/strict'
import { type Server, startServer, until } from '@plant-store/harness'
import { openStorage } from '@plant-store/persistence'
import { afterAll, expect, test } from 'vitest'
import { ask } from './ask.ts'
import { prepareDatabase } from './database.ts'
import { type Listener, listen } from './listener.ts'

await using starting = new AsyncDisposableStack()
const database = starting.use(await prepareDatabase())
const start = () => startServer({ databaseUrl: database.url })
const [first, second] = await Promise.all([start(), start()])
const one = starting.use(first)
const other = starting.use(second)
const token = database.tokens.full
const resources = starting.move()
afterAll(() => resources.disposeAsync())

/** Sends a request to one of the two processes, by the number of its sender. */
function send(racer: number, target: string, headers: Record<string, string> = {}) {
  const server = racer % 2 === 0 ? one : other
  const body = target.startsWith('PUT') ? `{"name":"racer ${racer}"}` : null
  return ask(server, target, { token, headers, body })
}

/** Lets twenty requests change one plant at once, and expects that one of them does. */
async function race(id: number, condition: Record<string, string>): Promise<void> {
  const racers = Array.from({ length: 20 }, (_, racer) => racer)
  const answers = await Promise.all(
    racers.map(racer => send(racer, `PUT /plants/${id}`, condition)),
  )
  const winners = racers.filter(racer => Number(answers[racer]?.status) < 300)
  const [winner] = winners
  assert(winner !== undefined && winners.length === 1, `${winners.length} racers won`)
  const losers = answers.filter(({ status }) => status === 412)
  expect(losers).toHaveLength(19)

  const read = await send(winner + 1, `GET /plants/${id}`)
  expect(JSON.parse(read.text)).toEqual({ id, name: `racer ${winner}` })
  expect(read.headers.get('etag')).toBe(answers[winner]?.headers.get('etag'))
}

test('one of twenty racers through two processes creates, and one replaces', async () => {
  await race(0, { 'if-none-match': '*' })
  const created = await send(0, 'GET /plants/0')
  await race(0, { 'if-match': `${created.headers.get('etag')}` })
})

test('several processes never deliver to one webhook at the same time', async () => {
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
  const servers = [one, other]
  const { full, metrics } = database.tokens
  const headers = { 'content-type': 'application/x-ndjson' }
  const hasDelivered = async (server: Server) => {
    const { text } = await ask(server, 'GET /metrics', { token: metrics })
    return /^plant_store_deliveries_total.* [1-9]/m.test(text)
  }
  const ids: bigint[] = []
  const add = async (server: Server, count: number) => {
    const newIds = Array.from({ length: count }, (_, n) => BigInt(1000 + ids.length + n))
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
    await add(one, 1)
    await allDelivered()
    await add(other, 1)
    await allDelivered()
  }
  // While one delivers all of these, the other looks for some twice a second.
  await add(one, 100)
  await add(other, 100)
  await allDelivered()
  expect(simultaneousRequests).toBe(0)
  for (const { url, received, refused } of listeners) {
    expect(refused, url).toEqual([])
    expect(received, url).toEqual(ids)
  }
})

test('a token revoked in one process is refused by all', async () => {
  const processName = async ({ url }: Server) => {
    const answer = await fetch(`${url}/healthz`)
    return answer.headers.get('x-request-id')?.slice(0, 11)
  }
  expect(await processName(one)).not.toBe(await processName(other))

  await using storage = await openStorage({ url: database.url })
  await storage.tokens.remove('full')
  const statuses = async () => {
    const toOne = await ask(one, 'GET /plants/1', { token })
    const toOther = await ask(other, 'GET /plants/1', { token })
    return [toOne.status, toOther.status]
  }
  await expect.poll(statuses).toEqual([401, 401])
})

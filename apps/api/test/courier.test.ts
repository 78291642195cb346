import { edgeIds, fullPlant, texts } from '@plant-store/domain/testing'
import { startServer, until } from '@plant-store/harness'
import { writeJsonRecord } from '@plant-store/json'
import { openStorage } from '@plant-store/persistence'
import { expect, test } from 'vitest'
import { ask } from './ask.ts'
import { prepareDatabase } from './database.ts'
import { listen } from './listener.ts'

/** Plants with each end of int64, and each text that a store must keep. */
const plants = [...edgeIds, ...texts.keys().map(n => BigInt(1000 + n))].map((id, n) =>
  fullPlant(id, texts[n % texts.length] as string),
)

async function setUp(environment = {}) {
  await using stack = new AsyncDisposableStack()
  const database = stack.use(await prepareDatabase())
  const server = stack.use(await startServer({ databaseUrl: database.url, environment }))
  const token = database.tokens.full
  const ndjson = { 'content-type': 'application/x-ndjson' }
  const storage = stack.use(await openStorage({ url: database.url }))
  const resources = stack.move()
  return {
    database,
    server,
    storage,
    create: async (body: string) => (await ask(server, 'POST /plants', { token, body })).status,
    replace: async (id: number, body: string) =>
      (await ask(server, `PUT /plants/${id}`, { token, body })).status,
    createAll: async (body: string) =>
      (await ask(server, 'POST /plants/batch', { token, body, headers: ndjson })).status,
    metrics: async () => (await ask(server, 'GET /metrics', { token: database.tokens.metrics })).text,
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  }
}

test('every plant that is added is delivered once, in the order as added, with every digit and text', async () => {
  await using place = await setUp()
  expect(await place.create('{"id":5000,"name":"before there is a webhook"}')).toBe(200)
  await using listener = await listen(place.database.url)
  for (const plant of plants) expect(await place.create(writeJsonRecord(plant))).toBe(200)
  expect(await place.replace(6000, '{"name":"by PUT"}')).toBe(200)
  expect(await place.replace(6000, '{"name":"changed"}')).toBe(200)
  expect(await place.create('{"id":6000,"name":"taken"}')).toBe(400)
  const lines = '{"id":6001,"name":"a"}\n{"id":6001,"name":"taken"}\n{"id":6002,"name":"b"}\n'
  expect(await place.createAll(lines)).toBe(200)

  const expected = [...plants.map(({ id }) => id), 6000n, 6001n, 6002n]
  await until('the last is delivered', () => listener.received.length >= expected.length)
  expect(listener.refused).toEqual([])
  expect(listener.received).toEqual(expected)
  const settled = async () => (await place.storage.webhooks.outbox.figures())[0]?.waiting === 0
  await until('nothing waits', settled)
  const counted = `plant_store_deliveries_total{webhook="${listener.id}",outcome="received"} ${expected.length}\n`
  await until('all are counted', async () => (await place.metrics()).includes(counted))
  expect(await place.metrics()).toContain(`plant_store_announcements_waiting{webhook="${listener.id}"} 0`)
  expect(place.server.warnings()).toEqual([])
})

test('listeners that hang, fail or are gone hold up no other and no request', async () => {
  await using place = await setUp({ SHUTDOWN_TIMEOUT: '2s' })
  const { url } = place.database
  await using hangs = await listen(url, () => new Promise(() => {}))
  await using fails = await listen(url, (_, __, response) => response.writeHead(500).end())
  await using gone = await listen(url, (_, __, response) => response.writeHead(410).end())
  await using good = await listen(url)
  const ids = Array.from({ length: 30 }, (_, n) => BigInt(n))
  for (const id of ids) expect(await place.create(`{"id":${id},"name":"n"}`)).toBe(200)
  await until('the good one has all', () => good.received.length === ids.length)
  expect(good.received).toEqual(ids)
  for (const bad of [hangs, gone]) expect(bad.received).toEqual([0n])
  await until('the failure is counted', async () =>
    new RegExp(`{webhook="${fails.id}",outcome="failed"} [1-9]`).test(await place.metrics()),
  )

  const failures = new Map((await place.storage.webhooks.list()).map(each => [each.id, each.failures]))
  expect(failures.has(gone.id)).toBe(false)
  expect(failures.get(fails.id)).toBeGreaterThan(0)
  const [first] = await place.storage.webhooks.outbox.deliveriesOf(fails.id, 1)
  expect(first?.reason).toBe('answered 500')
  const said = () => new Set(place.server.warnings().map(({ msg }) => msg))
  await expect
    .poll(said)
    .toEqual(
      new Set(['an announcement failed, and is tried again', 'a webhook answered 410 and was removed']),
    )
  // A delivery that hangs is given up when the server stops, and its lease is given back.
  expect(await place.server.end()).toBe(0)
  const leaseMs = 60_000
  const claimed = new Set()
  for (;;) {
    const claim = await place.storage.webhooks.outbox.claim({ leaseMs, rowsMax: 1, textBytesMax: 1 })
    if (claim === undefined) break
    claimed.add(claim.webhook.id)
  }
  expect(claimed).toContain(hangs.id)
})

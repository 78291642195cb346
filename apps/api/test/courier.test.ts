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

test('each plant is delivered once beside listeners that hang or fail', async () => {
  await using database = await prepareDatabase()
  const { url, tokens } = database
  await using server = await startServer({
    databaseUrl: url,
    environment: { SHUTDOWN_TIMEOUT: '2s' },
  })
  await using storage = await openStorage({ url })
  const { outbox } = storage.webhooks
  const add = async (target: string, body: string, type = 'application/json') => {
    const headers = { 'content-type': type }
    expect(
      (await ask(server, target, { token: tokens.full, headers, body })).status,
    ).toBe(200)
  }
  await add('POST /plants', '{"id":5000,"name":"before there is a webhook"}')
  await using hangs = await listen(url, () => new Promise(() => {}))
  await using fails = await listen(url, (_, __, response) =>
    response.writeHead(500).end(),
  )
  await using gone = await listen(url, (_, __, response) => response.writeHead(410).end())
  await using good = await listen(url)
  for (const plant of plants) {
    await add('POST /plants', writeJsonRecord(plant))
  }
  await add('PUT /plants/6000', '{"name":"by PUT"}')
  await add('PUT /plants/6000', '{"name":"changed"}')
  await add(
    'POST /plants/batch?announce=false',
    '{"id":5001,"name":"in silence"}\n',
    'application/x-ndjson',
  )
  await add(
    'POST /plants/batch',
    '{"id":6001,"name":"a"}\n{"id":6002,"name":"b"}\n',
    'application/x-ndjson',
  )

  const expected = [...plants.map(({ id }) => id), 6000n, 6001n, 6002n]
  await until('the good one has all', () => good.received.length >= expected.length)
  expect(good.refused).toEqual([])
  expect(good.received).toEqual(expected)
  for (const bad of [hangs, gone]) {
    expect(bad.received).toEqual([plants[0]?.id])
  }
  const metrics = async () =>
    (await ask(server, 'GET /metrics', { token: tokens.metrics })).text
  const counted = [
    `plant_store_deliveries_total{webhook="${good.id}",outcome="received"} ${expected.length}\n`,
    `plant_store_announcements_waiting{webhook="${good.id}"} 0\n`,
  ]
  await until('all are counted', async () => {
    const text = await metrics()
    return counted.every(line => text.includes(line))
  })
  await until('the failure is counted', async () =>
    new RegExp(`{webhook="${fails.id}",outcome="failed"} [1-9]`).test(await metrics()),
  )

  const failures = new Map(
    (await storage.webhooks.list()).map(each => [each.id, each.failures]),
  )
  expect(failures.has(gone.id)).toBe(false)
  expect(failures.get(fails.id)).toBeGreaterThan(0)
  const [first] = await outbox.deliveriesOf(fails.id, 1)
  expect(first?.reason).toBe('answered 500')
  const said = () => new Set(server.warnings().map(({ msg }) => msg))
  await expect
    .poll(said)
    .toEqual(
      new Set([
        'an announcement failed, and is tried again',
        'a webhook answered 410 and was removed',
      ]),
    )
  // A delivery that hangs is given up when the server stops, and its lease is given back.
  expect(await server.end()).toBe(0)
  const claimed = new Set()
  for (;;) {
    const claim = await outbox.claim({ leaseMs: 60_000, rowsMax: 1, textBytesMax: 1 })
    if (claim === undefined) {
      break
    }
    claimed.add(claim.webhook.id)
  }
  expect(claimed).toContain(hangs.id)
})

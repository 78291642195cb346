import { edgeIds, fullPlant, texts } from '@plant-store/domain/testing'
import { type Server, startServer, until } from '@plant-store/harness'
import { writeJsonRecord } from '@plant-store/json'
import { openStorage } from '@plant-store/persistence'
import type { Outbox } from '@plant-store/webhooks'
import { expect, test } from 'vitest'
import { ask } from './ask.ts'
import { prepareDatabase } from './database.ts'
import { listen } from './listener.ts'

const textIds = Array.from(texts, (_, n) => BigInt(1000 + n))
/** Plants with each end of int64, and each text that a store must keep. */
const plants = [...edgeIds, ...textIds].map((id, n) =>
  fullPlant(id, texts[n % texts.length] ?? ''),
)

const oneWarningOfEachKind = [
  'a webhook answered 410 and was removed',
  'an announcement failed, and is tried again',
]

/** Adds plants in every way. Resolves to the ids that are announced, in order. */
async function addPlants(server: Server, token: string): Promise<readonly bigint[]> {
  const add = async (target: string, body: string, type = 'application/json') => {
    const headers = { 'content-type': type }
    const answer = await ask(server, target, { token, headers, body })
    expect([200, 201], `${target} ${body}`).toContain(answer.status)
  }
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
  return [...plants.map(({ id }) => id), 6000n, 6001n, 6002n]
}

/** Leases every webhook that has due deliveries and no lease. Resolves to their ids. */
async function leaseAll(outbox: Outbox): Promise<readonly string[]> {
  const leased: string[] = []
  for (;;) {
    const claim = await outbox.claim({ leaseMs: 60_000, rowsMax: 1, textBytesMax: 1 })
    if (claim === undefined) {
      return leased
    }
    leased.push(claim.webhook.id)
  }
}

test('each plant is delivered once beside listeners that hang or fail', async () => {
  await using database = await prepareDatabase()
  const { url, tokens } = database
  await using server = await startServer({
    databaseUrl: url,
    environment: { SHUTDOWN_TIMEOUT: '2s' },
  })
  await using storage = await openStorage({ url })
  const { outbox } = storage.webhooks
  const body = '{"id":5000,"name":"before there is a webhook"}'
  const early = await ask(server, 'POST /plants', { token: tokens.full, body })
  expect(early.status).toBe(200)
  await using hanging = await listen(url, () => new Promise(() => {}))
  await using failing = await listen(url, (_, __, response) =>
    response.writeHead(500).end(),
  )
  await using removed = await listen(url, (_, __, response) =>
    response.writeHead(410).end(),
  )
  await using good = await listen(url)

  const announced = await addPlants(server, tokens.full)

  await until('the good one has all', () => good.received.length >= announced.length)
  expect(good.refused).toEqual([])
  expect(good.received).toEqual(announced)
  expect(hanging.received).toEqual(announced.slice(0, 1))
  expect(removed.received).toEqual(announced.slice(0, 1))

  const metrics = async () => {
    const { text } = await ask(server, 'GET /metrics', { token: tokens.metrics })
    return text
  }
  await expect
    .poll(metrics)
    .toContain(
      `plant_store_deliveries_total{webhook="${good.id}",outcome="received"} ${announced.length}\n`,
    )
  await expect
    .poll(metrics)
    .toContain(`plant_store_announcements_waiting{webhook="${good.id}"} 0\n`)
  await expect
    .poll(metrics)
    .toMatch(new RegExp(`{webhook="${failing.id}",outcome="failed"} [1-9]`))

  const kept = await storage.webhooks.list()
  expect(kept).not.toContainEqual(expect.objectContaining({ id: removed.id }))
  expect(kept.find(({ id }) => id === failing.id)?.failures).toBeGreaterThan(0)
  const [first] = await outbox.deliveriesOf(failing.id, 1)
  expect(first?.reason).toBe('answered 500')
  const kindsOfWarnings = () => [...new Set(server.warnings().map(({ msg }) => msg))]
  await expect.poll(() => kindsOfWarnings().sort()).toEqual(oneWarningOfEachKind)

  // A delivery that hangs is given up when the server stops, and its lease is given back.
  expect(await server.end()).toBe(0)
  expect(await leaseAll(outbox)).toContain(hanging.id)
})

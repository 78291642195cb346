import type { Server } from '@plant-store/harness'
import { query } from '@plant-store/harness/postgres'
import { startProxy } from '@plant-store/harness/postgres-proxy'
import { openStorage } from '@plant-store/persistence'
import { afterAll, expect, test } from 'vitest'
import { alone, ask, create, start } from './ask.ts'
import { prepareDatabase } from './database.ts'
import { listen } from './listener.ts'

await using starting = new AsyncDisposableStack()
const database = starting.use(await prepareDatabase())
const proxy = starting.use(await startProxy(database.url))
const [one, other] = await Promise.all([
  start({ HTTP_THREADS: '2' }, { databaseUrl: proxy.url }),
  start({}, { databaseUrl: database.url }),
])
starting.use(one)
starting.use(other)
const resources = starting.move()
afterAll(() => resources.disposeAsync())

let lastId = 0
async function add(server: Server): Promise<number> {
  lastId++
  return (await create(server, lastId)).status
}

test('several processes never deliver to one webhook at the same time', async () => {
  let underWay = 0
  let mostUnderWay = 0
  using listener = await listen(database.url, async response => {
    underWay++
    mostUnderWay = Math.max(mostUnderWay, underWay)
    await new Promise(setImmediate)
    underWay--
    response.end()
  })
  const hasDelivered = async (server: Server) => {
    const { text } = await ask(server, 'GET /metrics')
    return /^plant_store_deliveries_total.* [1-9]/m.test(text)
  }
  const allDelivered = () =>
    expect.poll(() => listener.received.length).toBeGreaterThanOrEqual(lastId)
  // The process that looks first delivers, and then the other one may.
  while (!(await hasDelivered(one)) || !(await hasDelivered(other))) {
    await add(one)
    await allDelivered()
    await add(other)
    await allDelivered()
  }

  // While one delivers all of these, the other looks for some twice a second.
  await Promise.all(
    Array.from({ length: 100 }, () => Promise.all([add(one), add(other)])),
  )
  await allDelivered()

  expect(mostUnderWay).toBe(1)
  expect(listener.refused).toEqual([])
  expect(new Set(listener.received).size).toBe(listener.received.length)
})

test('a warning of PostgreSQL is a line in the log', async () => {
  await query(
    database.url,
    `create function warn() returns trigger language plpgsql as $$ begin
      raise warning 'database must be vacuumed';
      return new;
    end $$;
    create trigger warn before insert on plants for each row execute function warn()`,
  )

  expect(await add(one)).toBe(200)

  const { level, ...line } = await one.logged('the database server warns')
  expect([level, line]).toMatchObject(['warn', { warning: 'database must be vacuumed' }])
})

test('an outage and its end are in the figures, the answers and the log', async () => {
  const figures = async () => (await ask(one, 'GET /metrics')).text

  proxy.refuse()
  // Nothing else has asked for the store: the figures notice.
  const during = await figures()
  const refused = Array.from({ length: 20 }, () =>
    ask(one, 'GET /plants', { headers: alone }),
  )
  const statuses = (await Promise.all(refused)).map(({ status }) => status)
  const failure = await one.logged('the store is failing')
  await proxy.accept()
  await one.logged('the store has recovered')

  expect(during).toMatch(
    /^plant_store_ready 0\n[\s\S]*^plant_store_failure\{reason=".+"\} 1$/m,
  )
  expect(new Set(statuses)).toEqual(new Set([503]))
  expect(failure).toMatchObject({
    level: 'error',
    reason: expect.any(String),
    store: expect.stringMatching(/^postgres:\/\/postgres@127/),
  })
  // Each thread finds out for itself, and another may have logged the recovery.
  await expect.poll(figures).toMatch(/^plant_store_ready 1$/m)
  await expect.poll(() => add(one)).toBe(200)
})

test('a token revoked in one process is refused by all', async () => {
  const token = database.tokens.full
  const statuses = async () => {
    const answers = [one, other].map(server => ask(server, 'GET /plants', { token }))
    return (await Promise.all(answers)).map(({ status }) => status)
  }
  expect(await statuses()).toEqual([200, 200])

  await using storage = await openStorage({ url: database.url })
  await storage.tokens.remove('full')

  await expect.poll(statuses).toEqual([401, 401])
})

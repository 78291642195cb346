import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { parsePlantListQuery } from '@plant-store/domain'
import { type Entity, storesOf } from '@plant-store/engine'
import { startServer, temporaryFolder } from '@plant-store/harness'
import { entities, inspectStore, openStorage } from '@plant-store/persistence'
import { afterAll, expect, test } from 'vitest'
import { settleAll } from '../src/http/http-threads.ts'
import { alone, ask, connectRaw, create, createOver, start, token } from './ask.ts'
import { prepareDatabase } from './database.ts'
import { listen } from './listener.ts'
import { makeKey, settingsOf, startPartner } from './partner.ts'

/** Creates a store as the first release did. */
async function createOlderStore(url: string) {
  const first = Object.entries<Entity>(entities).map(([name, entity]) => {
    const compile = () => ({ statements: {}, port: () => ({}) })
    return [name, { ...entity, compile, migrations: { 1: entity.migrations[1] } }]
  })
  await using _ = await storesOf(Object.fromEntries(first)).openStorage({ url })
}

await using starting = new AsyncDisposableStack()
const database = starting.use(await prepareDatabase())
const provider = starting.use(await startPartner(() => {}))
const listener = starting.use(await listen(database.url, () => new Promise(() => {})))
const older = `file:${join(starting.use(temporaryFolder()).path, 'plants.db')}`
await createOlderStore(older)
const [program, balanced] = await Promise.all([
  start(
    {
      HTTP_THREADS: '2',
      SHUTDOWN_DELAY: '200ms',
      // A batch that never ends is answered in 3 s, before the fetch of keys gives up.
      SHUTDOWN_TIMEOUT: '6s',
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1',
      ...settingsOf(provider.url),
    },
    { databaseUrl: database.url },
  ),
  startServer({
    databaseUrl: older,
    // Its delay is never over here.
    environment: { HTTP_THREADS: '2', SHUTDOWN_DELAY: '1h' },
  }),
])
starting.use(program)
starting.use(balanced)
const resources = starting.move()
afterAll(() => resources.disposeAsync())

test('a start migrates an older store, and says that nobody has a token', async () => {
  const { schemaVersion: to } = await inspectStore(older)

  await balanced.logged(
    'there is no access token: create one with npx --yes pnpm@12 plant-store token create --name NAME --scope write',
  )

  const [migrated, listening] = balanced.log
  expect(migrated).toMatchObject({ level: 'warn', from: 1, to })
  expect(listening).toMatchObject({ msg: 'listening' })
})

test('a stop under load answers all, although partners hang or are missing', async () => {
  const key = await makeKey()
  const waiting = create(program, -2, await key.sign('flora'))
  await create(program, 0)
  await expect.poll(() => listener.received).toEqual([0n])
  // A batch whose client never ends.
  using batch = await connectRaw(program.url)
  batch.send(
    `POST /plants/batch HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer ${token}\r\n`,
    'Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n',
    '14\r\n{"id":-1,"name":"n"}\r\n',
  )
  let lastId = 0
  let ended: Promise<unknown> | undefined
  const work = async () => {
    using client = await connectRaw(program.url)
    let isLast = false
    while (!isLast) {
      lastId++
      const id = lastId
      const { status, headers } = await createOver(client, id)
      expect(status, `the answer to ${id}`).toBe(200)
      isLast = headers.get('connection') === 'close'
      if (id === 50) {
        ended = program.end('SIGINT')
      }
    }
    // A terminal and a package manager that passes it on send more signals.
    program.process.kill('SIGTERM')
    const bytesAfterLast = await client.closed()
    expect(`${bytesAfterLast}`, 'after the last answer').toBe('')
    // No thread listens any more, so none resets a client that comes back.
    await expect(connectRaw(program.url)).rejects.toThrow('ECONNREFUSED')
  }

  await Promise.all(Array.from({ length: 6 }, work))
  const answerToBatch = batch.answer(undefined)
  const first = await Promise.race([waiting, answerToBatch])
  const { body } = await answerToBatch
  // The server would wait a second for this client to close its connection.
  batch[Symbol.dispose]()
  expect(await ended).toBe(0)

  expect(first).toBe(await waiting)
  expect((await waiting).text).toContain('50306')
  expect(`${body}`).toMatch(/^\{"error":50303,/)
  const stopping = await program.logged('stopping')
  const stopped = await program.logged('stopped')
  expect(stopped.time - stopping.time).toBeGreaterThanOrEqual(200)
  expect(program.log.at(-1)).toBe(stopped)
  const warnings = program.warnings()
  expect([...new Set(warnings.map(({ msg }) => msg))].sort()).toEqual([
    'the collector takes no traces',
    "the identity provider's keys cannot be used",
  ])
  const reason = expect.stringContaining('ECONNREFUSED')
  expect(warnings).toContainEqual(expect.objectContaining({ level: 'warn', reason }))
  // The WAL was taken into the database: it was closed, not left.
  expect(existsSync(`${database.url.slice('file:'.length)}-wal`)).toBe(false)
  await using storage = await openStorage({ url: database.url })
  const query = { ...parsePlantListQuery({ after: 0n }), limit: lastId }
  expect(await storage.plants.page(query)).toHaveLength(lastId)
  // The lease of the delivery that hangs was given back.
  const claim = { leaseMs: 60_000, rowsMax: 1, textBytesMax: 1 }
  const claimed = await storage.webhooks.outbox.claim(claim)
  expect(claimed?.webhook.id).toBe(listener.id)
})

test('clients whose balancer asks /readyz are all answered in a stop', async () => {
  const statuses: number[] = []
  let isTakenOut = false
  const work = async () => {
    while (!isTakenOut) {
      const { status } = await ask(balanced, 'GET /healthz', { headers: alone })
      if (statuses.push(status) === 20) {
        balanced.process.kill('SIGTERM')
      }
    }
  }
  const balance = async () => {
    while (!isTakenOut) {
      const { status } = await ask(balanced, 'GET /readyz', { headers: alone })
      isTakenOut = status === 503
    }
  }

  await Promise.all([balance(), ...Array.from({ length: 8 }, work)])
  const late = await ask(balanced, 'GET /openapi.json', { headers: alone })

  expect(new Set(statuses)).toEqual(new Set([200]))
  expect(late.status).toBe(200)
})

test('a step of a stop that fails waits for the others', async () => {
  const ended: string[] = []
  const other = Promise.withResolvers<void>()
  const failing = Promise.reject(new Error('a step fails'))
  const stop = settleAll([failing, other.promise]).catch(({ message }) =>
    ended.push(message),
  )

  await new Promise(resolve => setImmediate(resolve))
  ended.push('the other step ends')
  other.resolve()
  await stop

  expect(ended).toEqual(['the other step ends', 'a step fails'])
})

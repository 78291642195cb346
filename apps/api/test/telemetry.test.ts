import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { temporaryFolder, until } from '@plant-store/harness'
import type { Wire } from '@plant-store/http/testing'
import { backUpStore } from '@plant-store/persistence'
import { afterAll, expect, test } from 'vitest'
import { version } from '../src/version.ts'
import { ask, connectRaw, createOver, start, token } from './ask.ts'
import { prepareDatabase } from './database.ts'

/** Printed by each thread at its end. */
const report = `process.on('exit', () => {
  const isLoaded = process.moduleLoadList.some(name => name.includes('undici'))
  process.getBuiltinModule('fs').writeSync(2, isLoaded ? 'with undici\\n' : 'without\\n')
})`

/** The path of BASE_URL. */
const base = '/green/store'

await using starting = new AsyncDisposableStack()
const { path: folder } = starting.use(temporaryFolder())
const database = starting.use(await prepareDatabase())
const storeFile = database.url.slice('file:'.length)
const filesOfStore = () =>
  readdirSync(dirname(storeFile)).map(name => join(dirname(storeFile), name))
const notify = '#!/bin/sh\necho "$NOTIFY_SOCKET $*" > notified\n'
writeFileSync(join(folder, 'systemd-notify'), notify, { mode: 0o700 })
const server = starting.use(
  await start(
    {
      BASE_URL: `https://plants.example.org${base}/`,
      BODY_LIMIT: '100',
      CORS_ORIGINS: 'http://localhost:8080, https://plants.example',
      HTTP_THREADS: '3',
      LOG_LEVEL: 'trace',
      NOTIFY_SOCKET: '/run/systemd/notify',
      // They would give each line a trace.
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1',
      OTEL_TRACES_EXPORTER: 'none',
      PATH: `${folder}:/bin`,
      TRUST_PROXY: '127.0.0.1',
    },
    {
      databaseUrl: database.url,
      folder,
      preload: `data:text/javascript,${encodeURIComponent(report)}`,
    },
  ),
)
const resources = starting.move()
afterAll(() => resources.disposeAsync())

/** Returns every sample by its name and labels. */
async function readSamples(): Promise<Readonly<Record<string, number>>> {
  const { text } = await ask(server, 'GET /metrics')
  const matches = text.matchAll(/^(\w+(?:\{.*\})?) (\S+)$/gm)
  return Object.fromEntries(Array.from(matches, ([, key, value]) => [key, Number(value)]))
}

/** Sends three creates, of which the last is refused. Resolves to the ids of requests. */
async function createTwice(client: Wire, index: number): Promise<unknown[]> {
  const answers = [
    await createOver(client, index, base),
    await createOver(client, 1000 + index, base),
    await createOver(client, index, base),
  ]
  return answers.map(({ headers }) => headers.get('x-request-id'))
}

test('requests and commits are counted over all threads together', async () => {
  // The system spreads connections over the threads by their ports: with this many, none
  // is left out.
  const connecting = Array.from({ length: 40 }, () => connectRaw(server.url))
  const clients = await Promise.all(connecting)
  const requestIds = await Promise.all(clients.map(createTwice))

  const samples = await readSamples()
  for (const client of clients) {
    client[Symbol.dispose]()
  }

  const created = `{method="POST",route="${base}/plants",status="200"}`
  const refused = `{method="POST",route="${base}/plants",status="400"}`
  expect(new Set(requestIds.flat()).size).toBe(120)
  expect(samples).toMatchObject({
    [`http_requests_total${created}`]: 80,
    [`http_requests_total${refused}`]: 40,
    [`http_request_duration_seconds_count${created}`]: 80,
    // Each change was in exactly one commit, whichever threads shared it. The use of a
    // token in the store would be a change, too.
    plant_store_commit_changes_sum: 120,
    plant_store_commit_seconds_count: samples['plant_store_commit_changes_count'],
    plant_store_plants: 80,
    plant_store_waiting_changes: 0,
    plant_store_log_lines_lost_total: 0,
    ...Object.fromEntries(
      [0, 1, 2, 3].map(thread => [
        `nodejs_eventloop_lag_max_seconds{thread="${thread}"}`,
        expect.any(Number),
      ]),
    ),
  })
  // The clients', and those that ask for the figures.
  expect(samples['http_connections_open']).toBeGreaterThanOrEqual(40)
  const open = async () => (await readSamples())['http_connections_open']
  await expect.poll(open).toBeLessThanOrEqual(4)
})

test('the figures show the process, its store and the last backup', async () => {
  const before = await readSamples()
  const bytes = filesOfStore().reduce((sum, file) => sum + statSync(file).size, 0)
  const backUpAt = Date.now() / 1000

  await backUpStore(database.url, join(folder, 'backup'))
  const after = await readSamples()

  expect(before).toMatchObject({
    [`plant_store_build_info{version="${version}"}`]: 1,
    plant_store_ready: 1,
    plant_store_size_bytes: bytes,
    plant_store_last_backup_timestamp_seconds: 0,
  })
  expect(before['process_cpu_user_seconds_total']).toBeGreaterThan(0)
  expect(before['process_resident_memory_bytes']).toBeGreaterThan(10_000_000)
  const ageSeconds = backUpAt - Number(before['process_start_time_seconds'])
  expect(Math.abs(ageSeconds)).toBeLessThan(60)
  const lateSeconds =
    Number(after['plant_store_last_backup_timestamp_seconds']) - backUpAt
  expect(Math.abs(lateSeconds)).toBeLessThan(30)
})

test('the log has a line for each request, without tokens and bodies', async () => {
  const { full, expired } = database.tokens
  const plantId = '9223372036854775807'
  const body = `{"id": ${plantId}, "name": "secret-name", "tag": "secret-tag"}`
  const requests = [
    { target: 'POST /plants', token: full, body, line: { status: 200, plantId } },
    { target: 'POST /plants', token: full, body: body.repeat(2), line: { status: 413 } },
    { target: `GET /plants?access_token=${full}`, line: { error: 40012 } },
    { target: `GET /${full}`, line: { status: 404 } },
    {
      target: 'GET /plants',
      token: expired,
      line: { status: 401, token: 'expired', reason: 'the access token has expired' },
    },
  ]
  const headers = { cookie: 'secret-cookie', 'x-forwarded-for': '203.0.113.7' }
  const requestIds: unknown[] = []
  for (const { target, line: _, ...request } of requests) {
    const answer = await ask(server, target, { headers, ...request })
    requestIds.push(answer.headers.get('x-request-id'))
  }
  using broken = await connectRaw(server.url)
  broken.send(`POST /plants HTTP/1.1\r\nAuthorization: Bearer ${full}\r\nsecret\r\n\r\n`)
  const answerToBroken = await broken.answer(undefined)
  requestIds.push(answerToBroken.headers.get('x-request-id'))

  // The threads hand over their lines in any order.
  const lines = () =>
    requestIds.flatMap(id => server.log.filter(({ reqId }) => reqId === id))
  await expect.poll(lines).toHaveLength(requestIds.length)

  expect(lines()).toMatchObject([...requests.map(({ line }) => line), { error: 40000 }])
  expect(lines()[0]).toEqual({
    level: 'info',
    time: expect.any(Number),
    reqId: expect.stringMatching(/^[\w-]{8,40}$/),
    client: '203.0.113.7',
    method: 'POST',
    route: `${base}/plants`,
    status: 200,
    token: 'full',
    plantId,
    ms: expect.any(Number),
    msg: 'answered',
  })
  const text = JSON.stringify(server.log)
  for (const secret of ['secret', token, full, expired]) {
    expect(text, secret).not.toContain(secret.replace('plantstore_', ''))
  }
})

test('systemd is notified once the server serves', async () => {
  const file = join(folder, 'notified')

  await until('it is', () => existsSync(file))

  expect(readFileSync(file, 'utf8')).toBe('/run/systemd/notify --ready\n')
})

test('SIGUSR1 opens no debugger, and SIGUSR2 ends nothing', async () => {
  server.process.kill('SIGUSR1')
  server.process.kill('SIGUSR2')

  // They are handled before the requests that follow.
  expect((await ask(server, 'GET /plants')).status).toBe(200)
  expect(server.errors()).toBe('')
})

test('the path of BASE_URL is before every route, and in the description', async () => {
  const root = { url: new URL(server.url).origin }
  for (const page of ['/readyz', '/openapi.json', '/plants', '/browse']) {
    const below = await ask(server, `GET ${page}`)
    const above = await ask(root, `GET ${page}`)
    expect([below.status, above.status], page).toEqual([200, 404])
  }
  const description = await ask(server, 'GET /openapi.json')
  const list = await ask(server, 'GET /plants?limit=1')

  expect(JSON.parse(description.text)).toMatchObject({
    servers: [{ url: `https://plants.example.org${base}` }],
  })
  expect(list.headers.get('link')).toMatch(`<${base}/plants?limit=1&after=`)
})

test('a page of CORS_ORIGINS may read an answer', async () => {
  const headers = { origin: 'https://plants.example' }

  const answer = await ask(server, 'GET /healthz', { headers })

  expect(answer.headers.get('access-control-allow-origin')).toBe(headers.origin)
})

test('it ends with no token in its store, and undici in no thread', async () => {
  expect(await server.end()).toBe(0)

  const kept = filesOfStore().map(file => readFileSync(file))
  expect(Buffer.concat(kept).toString('latin1')).not.toContain(token)
  expect(server.log.at(-1)?.msg).toBe('stopped')
  // undici costs 80 ms and 4 MiB. The threads: the main one, the writer and three for
  // HTTP.
  expect(server.errors()).toBe('without\n'.repeat(5))
})

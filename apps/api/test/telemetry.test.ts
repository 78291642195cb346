import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import type { Server } from '@plant-store/harness'
import { temporaryFolder, until } from '@plant-store/harness'
import type { StoreTokens, Wire } from '@plant-store/http/testing'
import { backUpStore } from '@plant-store/persistence'
import { afterAll, expect, test } from 'vitest'
import { ask, connectRaw, rawPost, start, token } from './ask.ts'
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
const notify = '#!/bin/sh\necho "$NOTIFY_SOCKET $*" > notified\n'
writeFileSync(join(folder, 'systemd-notify'), notify, { mode: 0o700 })
const server = starting.use(
  await start(
    {
      BASE_URL: `https://plants.example.org${base}/`,
      CORS_ORIGINS: 'http://localhost:8080, https://plants.example',
      HTTP_THREADS: '3',
      LOG_FORMAT: 'json',
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
function samplesIn(text: string): Map<string, number> {
  const matches = text.matchAll(/^(\w+(?:\{.*\})?) (\S+)$/gm)
  return new Map(Array.from(matches, ([, name = '', value]) => [name, Number(value)]))
}

async function samplesOf(server: Server): Promise<Map<string, number>> {
  const { text } = await ask(server, 'GET /metrics')
  return samplesIn(text)
}

/** Sends three creates, of which the last is refused. Resolves to the ids of requests. */
async function createTwice(client: Wire, index: number): Promise<unknown[]> {
  const requestIds = []
  for (const id of [index, 1000 + index, index]) {
    client.send(rawPost(token, `{"id": ${id}, "name": "n"}`, `${base}/plants`))
    const { headers } = await client.answer(undefined)
    requestIds.push(headers.get('x-request-id'))
  }
  return requestIds
}

test('requests and commits are counted over all threads together', async () => {
  // The system spreads connections over the threads by their ports: with this many, none
  // is left out.
  const connecting = Array.from({ length: 40 }, () => connectRaw(server.url))
  const clients = await Promise.all(connecting)
  const requestIds = await Promise.all(clients.map(createTwice))
  expect(new Set(requestIds.flat()).size).toBe(120)

  const answer = await ask(server, 'GET /metrics')

  expect(answer.headers.get('content-type')).toBe(
    'text/plain; version=0.0.4; charset=utf-8',
  )
  const samples = samplesIn(answer.text)
  const created = `method="POST",route="${base}/plants",status="200"`
  const refused = `method="POST",route="${base}/plants",status="400"`
  const duration = 'http_request_duration_seconds'
  expect(samples.get(`http_requests_total{${created}}`)).toBe(80)
  expect(samples.get(`http_requests_total{${refused}}`)).toBe(40)
  expect(samples.get(`${duration}_count{${created}}`)).toBe(80)
  expect(samples.get(`${duration}_bucket{${created},le="+Inf"}`)).toBe(80)
  expect(samples.get(`${duration}_sum{${created}}`)).toBeGreaterThan(0)
  const buckets = [...samples].filter(([name]) =>
    name.startsWith(`${duration}_bucket{${created}`),
  )
  expect(buckets.length).toBeGreaterThan(10)
  const counts = buckets.map(([, count]) => count)
  expect(counts).toEqual(counts.toSorted((a, b) => a - b))
  // The clients', and those that ask for the figures.
  expect(samples.get('http_connections_open')).toBeGreaterThanOrEqual(40)
  expect(samples.get('http_connections_open')).toBeLessThanOrEqual(44)
  // Each change was in exactly one commit, whichever threads shared it. The use of a
  // token in the store would be a change, too.
  expect(samples.get('plant_store_commit_changes_sum')).toBe(120)
  expect(samples.get('plant_store_commit_seconds_count')).toBe(
    samples.get('plant_store_commit_changes_count'),
  )
  expect(samples.get('plant_store_commit_seconds_sum')).toBeGreaterThan(0)
  for (const thread of [0, 1, 2, 3]) {
    const lag = samples.get(`nodejs_eventloop_lag_max_seconds{thread="${thread}"}`)
    expect(lag, `of thread ${thread}`).toBeGreaterThanOrEqual(0)
  }

  for (const client of clients) {
    client[Symbol.dispose]()
  }
  const open = async () => (await samplesOf(server)).get('http_connections_open')
  await expect.poll(open).toBeLessThanOrEqual(4)
})

test('the figures show the process, its store and the last backup', async () => {
  const manifest = readFileSync(
    new URL('../../cli/package.json', import.meta.url),
    'utf8',
  )
  const { version } = JSON.parse(manifest)

  const samples = await samplesOf(server)

  expect(samples.get(`plant_store_build_info{version="${version}"}`)).toBe(1)
  expect(samples.get('plant_store_ready')).toBe(1)
  expect(samples.get('plant_store_plants')).toBe(80)
  expect(samples.get('plant_store_waiting_changes')).toBe(0)
  const ofStore = dirname(storeFile)
  const fileBytes = readdirSync(ofStore).map(name => statSync(join(ofStore, name)).size)
  const storeBytes = fileBytes.reduce((sum, bytes) => sum + bytes)
  expect(samples.get('plant_store_size_bytes')).toBe(storeBytes)
  expect(samples.get('process_cpu_user_seconds_total')).toBeGreaterThan(0)
  expect(samples.get('process_resident_memory_bytes')).toBeGreaterThan(10_000_000)
  const startedAt = samples.get('process_start_time_seconds') ?? 0
  expect(Math.abs(Date.now() / 1000 - startedAt)).toBeLessThan(60)

  const lastBackup = 'plant_store_last_backup_timestamp_seconds'
  expect(samples.get(lastBackup)).toBe(0)
  const beforeBackup = Date.now() / 1000
  await backUpStore(database.url, `${storeFile}.backup`)
  const backedUpAt = (await samplesOf(server)).get(lastBackup)
  expect(backedUpAt).toBeGreaterThanOrEqual(beforeBackup)
  expect(backedUpAt).toBeLessThanOrEqual(Date.now() / 1000)

  rmSync(`${storeFile}.last-backup`)
  mkdirSync(`${storeFile}.last-backup`)
  const unreadable = (await samplesOf(server)).get(lastBackup)
  rmdirSync(`${storeFile}.last-backup`)
  expect(unreadable, 'a time that cannot be read').toBe(backedUpAt)
})

test('the figures are refused without a token', async () => {
  const answer = await fetch(`${server.url}/metrics`)

  expect(answer.status).toBe(401)
})

interface LoggedRequest {
  readonly target: string
  readonly bearer: string
  readonly body?: string
  /** The line of the log has these values. */
  readonly status: number
  readonly error?: number
  readonly plantId?: string
}

const plantId = '9223372036854775807'
const badToken = 'plantstore_a-token-that-nobody-has'

/** Requests that have a secret wherever one fits. */
function requestsWithSecrets({ full, readOnly, expired }: StoreTokens): LoggedRequest[] {
  return [
    {
      target: 'POST /plants',
      bearer: full,
      body: `{"id": ${plantId}, "name": "secret-of-a-plant", "tag": "secret-tag"}`,
      status: 200,
      plantId,
    },
    {
      target: 'POST /plants',
      bearer: token,
      body: `{"id": ${plantId}, "name": "secret-of-a-plant"}`,
      status: 400,
      error: 40003,
      plantId,
    },
    {
      target: 'POST /plants',
      bearer: full,
      body: '{"id": "secret-of-a-plant", "name": 5}',
      status: 400,
      error: 40002,
    },
    {
      target: 'POST /plants',
      bearer: full,
      body: '{"id": 2, "secret-twice": 1, "secret-twice": 2, "name": "n"}',
      status: 400,
      error: 40001,
    },
    {
      target: 'PUT /plants/-1',
      bearer: full,
      body: '{"name": "secret-of-a-plant", "secret-extra": "secret-extra"}',
      status: 201,
      plantId: '-1',
    },
    {
      target: 'DELETE /plants/secret-of-a-plant',
      bearer: full,
      status: 400,
      error: 40004,
    },
    {
      target: `GET /plants?access_token=${full}`,
      bearer: full,
      status: 400,
      error: 40012,
    },
    { target: 'GET /plants', bearer: badToken, status: 401, error: 40102 },
    { target: 'GET /plants', bearer: expired, status: 401, error: 40102 },
    {
      target: 'POST /plants',
      bearer: readOnly,
      body: '{"id": 9, "name": "secret-of-a-plant"}',
      status: 403,
      error: 40301,
    },
    {
      target: 'POST /plants',
      bearer: `${full} ${full}`,
      body: '{"id": 9, "name": "secret-of-a-plant"}',
      status: 401,
      error: 40102,
    },
    { target: `GET /${full}`, bearer: full, status: 404, error: 40401 },
  ]
}

const headersWithSecrets = {
  cookie: 'session=secret-cookie',
  'x-forwarded-for': '203.0.113.7',
}

test('the log has a line for each request, without tokens and bodies', async () => {
  const requests = requestsWithSecrets(database.tokens)
  const { full, readOnly, expired } = database.tokens
  const linesBefore = server.log.length
  const requestIds: unknown[] = []
  for (const { target, bearer, body = null } of requests) {
    const request = { token: bearer, headers: headersWithSecrets, body }
    const answer = await ask(server, target, request)
    requestIds.push(answer.headers.get('x-request-id'))
  }
  using broken = await connectRaw(server.url)
  broken.send(
    `POST /plants HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer ${full}\r\nsecret-of-a-plant\r\n\r\n`,
  )
  const answerToBroken = await broken.answer(undefined)
  requestIds.push(answerToBroken.headers.get('x-request-id'))
  const ofRequests = () =>
    server.log.slice(linesBefore).filter(line => requestIds.includes(line.reqId))
  await expect.poll(ofRequests).toHaveLength(requestIds.length)

  // The threads hand over their lines in any order.
  const lines = requestIds.map(id => ofRequests().find(({ reqId }) => reqId === id) ?? {})
  const expectedLines = [...requests, { status: 400, error: 40000 }]
  expect(lines.map(line => pick(line, ['status', 'error', 'plantId']))).toEqual(
    expectedLines.map(line => pick(line, ['status', 'error', 'plantId'])),
  )
  const refusals = lines.filter(line => 'reason' in line)
  expect(refusals.map(line => pick(line, ['status', 'token', 'reason']))).toEqual([
    { status: 401, reason: 'the access token is unknown or was revoked' },
    { status: 401, token: 'expired', reason: 'the access token has expired' },
    {
      status: 403,
      token: 'read only',
      reason: 'the access token lacks the scope plants:write',
    },
    {
      status: 401,
      reason:
        'the header field Authorization must be "Bearer", a space and the access token',
    },
  ])
  expect(lines[0]).toEqual({
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
  for (const secret of [full, readOnly, expired, token, badToken]) {
    expect(text, secret).not.toContain(secret.replace('plantstore_', ''))
  }
  expect(text).not.toMatch(/secret/)
})

test('systemd is notified once the server serves', async () => {
  await until('it is', () => existsSync(join(folder, 'notified')))

  expect(readFileSync(join(folder, 'notified'), 'utf8')).toBe(
    '/run/systemd/notify --ready\n',
  )
})

test('SIGUSR1 opens no debugger, and SIGUSR2 ends nothing', async () => {
  server.process.kill('SIGUSR1')
  server.process.kill('SIGUSR2')
  for (let n = 0; n < 20; n++) {
    const { status } = await ask(server, 'GET /plants')
    expect(status, `${n}`).toBe(200)
  }
})

test('the path of BASE_URL is before every route, and in the description', async () => {
  const root = { url: new URL(server.url).origin }
  for (const page of ['/healthz', '/readyz', '/openapi.json', '/plants']) {
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

test('a page of CORS_ORIGINS may read an answer from below the routes', async () => {
  const origin = 'https://plants.example'
  using client = await connectRaw(server.url)
  client.send(
    `GET ${base}/plants HTTP/1.1\r\nhost: h\r\nhost: again\r\norigin: ${origin}\r\n\r\n`,
  )
  const { status, headers } = await client.answer(undefined)

  expect(status).toBe(400)
  expect(headers.get('access-control-allow-origin')).toBe(origin)
})

test('it ends with no token in its store, and undici in no thread', async () => {
  expect(await server.end()).toBe(0)

  const ofStore = dirname(storeFile)
  const kept = readdirSync(ofStore).map(name => readFileSync(join(ofStore, name)))
  expect(Buffer.concat(kept).toString('latin1')).not.toContain(token)
  expect(server.log.at(-1)?.msg).toBe('stopped')
  // undici costs 80 ms and 4 MiB. The threads: the main one, the writer and three for
  // HTTP.
  expect(server.errors()).toBe('without\n'.repeat(5))
})

/** Returns the members with these names, as far as there are some. */
function pick(line: object, names: readonly string[]): object {
  const members = Object.entries(line).filter(([name]) => names.includes(name))
  return Object.fromEntries(members)
}

import { readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Server } from '@plant-store/harness'
import type { StoreTokens, Wire } from '@plant-store/http/testing'
import { backUpStore } from '@plant-store/persistence'
import { expect, test } from 'vitest'
import { ask, connectRaw, rawPost, start, token } from './ask.ts'
import { prepareDatabase } from './database.ts'

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
    client.send(rawPost(token, `{"id": ${id}, "name": "n"}`))
    const { headers } = await client.answer(undefined)
    requestIds.push(headers.get('x-request-id'))
  }
  return requestIds
}

test('requests and commits are counted over all threads together', async () => {
  await using database = await prepareDatabase()
  await using program = await start({ HTTP_THREADS: '3' }, { databaseUrl: database.url })
  // The system spreads connections over the threads by their ports: with this many, none
  // is left out.
  const connecting = Array.from({ length: 40 }, () => connectRaw(program.url))
  const clients = await Promise.all(connecting)
  const requestIds = await Promise.all(clients.map(createTwice))
  expect(new Set(requestIds.flat()).size).toBe(120)

  const answer = await ask(program, 'GET /metrics')

  expect(answer.headers.get('content-type')).toBe(
    'text/plain; version=0.0.4; charset=utf-8',
  )
  const samples = samplesIn(answer.text)
  const created = 'method="POST",route="/plants",status="200"'
  const refused = 'method="POST",route="/plants",status="400"'
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
  const open = async () => (await samplesOf(program)).get('http_connections_open')
  await expect.poll(open).toBeLessThanOrEqual(4)
  expect(await program.end('SIGTERM')).toBe(0)
})

test('the figures show the process, its store and the last backup', async () => {
  await using database = await prepareDatabase()
  const file = database.url.replace(/^file:/, '')
  await using program = await start({}, { databaseUrl: database.url })
  const manifest = readFileSync(
    new URL('../../cli/package.json', import.meta.url),
    'utf8',
  )
  const { version } = JSON.parse(manifest)

  const samples = await samplesOf(program)

  expect(samples.get(`plant_store_build_info{version="${version}"}`)).toBe(1)
  expect(samples.get('plant_store_ready')).toBe(1)
  expect(samples.get('plant_store_waiting_changes')).toBe(0)
  const folder = dirname(file)
  const fileBytes = readdirSync(folder).map(name => statSync(join(folder, name)).size)
  const storeBytes = fileBytes.reduce((sum, bytes) => sum + bytes)
  expect(samples.get('plant_store_size_bytes')).toBe(storeBytes)
  expect(samples.get('process_cpu_user_seconds_total')).toBeGreaterThan(0)
  expect(samples.get('process_resident_memory_bytes')).toBeGreaterThan(10_000_000)
  const startedAt = samples.get('process_start_time_seconds') ?? 0
  expect(Math.abs(Date.now() / 1000 - startedAt)).toBeLessThan(60)

  const lastBackup = 'plant_store_last_backup_timestamp_seconds'
  expect(samples.get(lastBackup)).toBe(0)
  const beforeBackup = Date.now() / 1000
  await backUpStore(database.url, `${file}.backup`)
  const backedUpAt = (await samplesOf(program)).get(lastBackup)
  expect(backedUpAt).toBeGreaterThanOrEqual(beforeBackup)
  expect(backedUpAt).toBeLessThanOrEqual(Date.now() / 1000)
})

test('the figures are refused without a token', async () => {
  await using program = await start()

  const answer = await fetch(`${program.url}/metrics`)

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
      status: 200,
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
  await using database = await prepareDatabase()
  const { full, readOnly, expired } = database.tokens
  const requests = requestsWithSecrets(database.tokens)
  await using program = await start({ LOG_LEVEL: 'trace' }, { databaseUrl: database.url })
  const requestIds: unknown[] = []
  for (const { target, bearer, body = null } of requests) {
    const request = { token: bearer, headers: headersWithSecrets, body }
    const answer = await ask(program, target, request)
    requestIds.push(answer.headers.get('x-request-id'))
  }
  using broken = await connectRaw(program.url)
  broken.send(
    `POST /plants HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer ${full}\r\nsecret-of-a-plant\r\n\r\n`,
  )
  const answerToBroken = await broken.answer(undefined)
  requestIds.push(answerToBroken.headers.get('x-request-id'))
  expect(await program.end('SIGTERM')).toBe(0)

  const lines = program.log.filter(({ msg }) => msg === 'answered')
  const expectedLines = [...requests, { status: 400, error: 40000 }]
  expect(lines.map(line => pick(line, ['status', 'error', 'plantId']))).toEqual(
    expectedLines.map(line => pick(line, ['status', 'error', 'plantId'])),
  )
  expect(lines).toMatchObject(requestIds.map(reqId => ({ reqId })))
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
    client: '127.0.0.1',
    method: 'POST',
    route: '/plants',
    status: 200,
    token: 'full',
    plantId,
    ms: expect.any(Number),
    msg: 'answered',
  })
  const text = JSON.stringify(program.log)
  for (const secret of [full, readOnly, expired, token, badToken]) {
    expect(text, secret).not.toContain(secret.replace('plantstore_', ''))
  }
  expect(text).not.toMatch(/secret|203\.0\.113/)
})

/** Returns the members with these names, as far as there are some. */
function pick(line: object, names: readonly string[]): object {
  const members = Object.entries(line).filter(([name]) => names.includes(name))
  return Object.fromEntries(members)
}

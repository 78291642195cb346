import { readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { backUpStore } from '@plant-store/persistence'
import { expect, test } from 'vitest'
import { ask, connectRaw, rawPost, start, token } from './ask.ts'
import { prepareDatabase } from './database.ts'

interface RequestLine {
  readonly status: number
  readonly reqId: string
  readonly token?: string
  readonly reason?: string
  readonly error?: number
  readonly plantId?: string
}

/** Returns every sample by its name and labels. */
const samplesIn = (text: string) =>
  new Map(
    [...text.matchAll(/^(\w+(?:\{.*\})?) (\S+)$/gm)].map(([, name = '', value]) => [
      name,
      Number(value),
    ]),
  )

test('the figures are those of all threads together', async () => {
  await using database = await prepareDatabase()
  const file = database.url.replace(/^file:/, '')
  // The use of a token in the store would be recorded, which is a change, too.
  await using program = await start({ HTTP_THREADS: '3' }, { databaseUrl: database.url })
  // The system spreads connections over the threads by their ports: with this many, none
  // is left out.
  const clients = await Promise.all(
    Array.from({ length: 40 }, () => connectRaw(program.url)),
  )
  const names = new Set<string | undefined>()
  await Promise.all(
    clients.map(async (client, index) => {
      for (const id of [index, 1000 + index, index]) {
        client.send(rawPost(token, `{"id": ${id}, "name": "n"}`))
        names.add((await client.answer(undefined)).headers.get('x-request-id'))
      }
    }),
  )
  expect(names.size).toBe(120)

  const figures = () => ask(program, 'GET /metrics')
  const answer = await figures()
  expect(answer.headers.get('content-type')).toBe(
    'text/plain; version=0.0.4; charset=utf-8',
  )
  const samples = samplesIn(answer.text)
  const created = 'method="POST",route="/plants",status="200"'
  const refused = 'method="POST",route="/plants",status="400"'
  expect(samples.get(`http_requests_total{${created}}`)).toBe(80)
  expect(samples.get(`http_requests_total{${refused}}`)).toBe(40)
  expect(samples.get(`http_request_duration_seconds_count{${created}}`)).toBe(80)
  expect(samples.get(`http_request_duration_seconds_bucket{${created},le="+Inf"}`)).toBe(
    80,
  )
  expect(samples.get(`http_request_duration_seconds_sum{${created}}`)).toBeGreaterThan(0)
  const buckets = [...samples].filter(([name]) =>
    name.startsWith(`http_request_duration_seconds_bucket{${created}`),
  )
  expect(buckets.length).toBeGreaterThan(10)
  const counts = buckets.map(([, count]) => count)
  expect(counts).toEqual([...counts].sort((a, b) => a - b))
  expect(samples.get('plant_store_waiting_changes')).toBe(0)
  const { version } = JSON.parse(
    readFileSync(new URL('../../cli/package.json', import.meta.url), 'utf8'),
  )
  expect(samples.get(`plant_store_build_info{version="${version}"}`)).toBe(1)
  expect(samples.get('plant_store_ready')).toBe(1)
  // The clients', and those that ask for the figures.
  expect(samples.get('http_connections_open')).toBeGreaterThanOrEqual(40)
  expect(samples.get('http_connections_open')).toBeLessThanOrEqual(44)
  const files = readdirSync(dirname(file)).map(
    name => statSync(join(dirname(file), name)).size,
  )
  expect(samples.get('plant_store_last_backup_timestamp_seconds')).toBe(0)
  expect(samples.get('plant_store_size_bytes')).toBe(
    files.reduce((sum, size) => sum + size),
  )
  // Each change was in exactly one commit, whichever threads shared it.
  expect(samples.get('plant_store_commit_changes_sum')).toBe(120)
  expect(samples.get('plant_store_commit_seconds_count')).toBe(
    samples.get('plant_store_commit_changes_count'),
  )
  expect(samples.get('plant_store_commit_seconds_sum')).toBeGreaterThan(0)
  for (const thread of [0, 1, 2, 3]) {
    expect(
      samples.get(`nodejs_eventloop_lag_max_seconds{thread="${thread}"}`),
      `${thread}`,
    ).toBeGreaterThanOrEqual(0)
  }
  expect(samples.get('process_cpu_user_seconds_total')).toBeGreaterThan(0)
  expect(samples.get('process_resident_memory_bytes')).toBeGreaterThan(10_000_000)
  expect(
    Math.abs(Date.now() / 1000 - (samples.get('process_start_time_seconds') ?? 0)),
  ).toBeLessThan(60)

  const beforeBackup = Date.now() / 1000
  await backUpStore(database.url, `${file}.backup`)
  const lastBackup = samplesIn((await figures()).text).get(
    'plant_store_last_backup_timestamp_seconds',
  )
  expect(lastBackup).toBeGreaterThanOrEqual(beforeBackup)
  expect(lastBackup).toBeLessThanOrEqual(Date.now() / 1000)

  expect((await fetch(`${program.url}/metrics`)).status).toBe(401)
  for (const client of clients) {
    client[Symbol.dispose]()
  }
  const open = async () => samplesIn((await figures()).text).get('http_connections_open')
  await expect.poll(open).toBeLessThanOrEqual(4)
  expect(await program.end('SIGTERM')).toBe(0)
})

test('the log has a line for each request, without tokens and bodies', async () => {
  await using database = await prepareDatabase()
  const { full, readOnly, expired } = database.tokens
  const bad = 'plantstore_a-token-that-nobody-has'
  const id = '9223372036854775807'
  await using program = await start({ LOG_LEVEL: 'trace' }, { databaseUrl: database.url })
  const answers: { status: number; headers: { get(name: string): unknown } }[] = []
  const headers = { cookie: 'session=secret-cookie', 'x-forwarded-for': '203.0.113.7' }
  const send = async (target: string, bearer: string, body: string | null = null) => {
    answers.push(await ask(program, target, { token: bearer, headers, body }))
  }
  await send(
    'POST /plants',
    full,
    `{"id": ${id}, "name": "secret-of-a-plant", "tag": "secret-tag"}`,
  )
  await send('POST /plants', token, `{"id": ${id}, "name": "secret-of-a-plant"}`)
  await send('POST /plants', full, '{"id": "secret-of-a-plant", "name": 5}')
  await send(
    'POST /plants',
    full,
    '{"id": 2, "secret-twice": 1, "secret-twice": 2, "name": "n"}',
  )
  await send(
    'PUT /plants/-1',
    full,
    '{"name": "secret-of-a-plant", "secret-extra": "secret-extra"}',
  )
  await send('DELETE /plants/secret-of-a-plant', full)
  await send(`GET /plants?access_token=${full}`, full)
  await send('GET /plants', bad)
  await send('GET /plants', expired)
  await send('POST /plants', readOnly, '{"id": 9, "name": "secret-of-a-plant"}')
  await send('POST /plants', `${full} ${full}`, '{"id": 9, "name": "secret-of-a-plant"}')
  await send(`GET /${full}`, full)
  using broken = await connectRaw(program.url)
  broken.send(
    `POST /plants HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer ${full}\r\nsecret-of-a-plant\r\n\r\n`,
  )
  answers.push(await broken.answer(undefined))
  expect(await program.end('SIGTERM')).toBe(0)

  const answered = program.log.filter(
    ({ msg }) => msg === 'answered',
  ) as object[] as RequestLine[]
  expect(answered.map(({ status, error, plantId }) => [status, error, plantId])).toEqual([
    [200, undefined, id],
    [400, 40003, id],
    [400, 40002, undefined],
    [400, 40001, undefined],
    [200, undefined, '-1'],
    [400, 40004, undefined],
    [400, 40012, undefined],
    [401, 40102, undefined],
    [401, 40102, undefined],
    [403, 40301, undefined],
    [401, 40102, undefined],
    [404, 40401, undefined],
    [400, 40000, undefined],
  ])
  expect(answered.map(({ status, reqId }) => [status, reqId])).toEqual(
    answers.map(({ status, headers }) => [status, headers.get('x-request-id')]),
  )
  const refused = answered.filter(({ status }) => status === 401 || status === 403)
  expect(refused.map(({ token, reason }) => [token, reason])).toEqual([
    [undefined, 'the access token is unknown or was revoked'],
    ['expired', 'the access token has expired'],
    ['read only', 'the access token lacks the scope plants:write'],
    [
      undefined,
      'the header field Authorization must be "Bearer", a space and the access token',
    ],
  ])
  expect(answered.filter(line => 'reason' in line)).toHaveLength(refused.length)
  expect(answered[0]).toEqual({
    level: 'info',
    time: expect.any(Number),
    reqId: expect.stringMatching(/^[\w-]{8,40}$/),
    client: '127.0.0.1',
    method: 'POST',
    route: '/plants',
    status: 200,
    token: 'full',
    plantId: id,
    ms: expect.any(Number),
    msg: 'answered',
  })
  const text = JSON.stringify(program.log)
  for (const given of [full, readOnly, expired, token, bad]) {
    expect(text, given).not.toContain(given)
    expect(text, given).not.toContain(given.replace('plantstore_', ''))
  }
  expect(text).not.toMatch(/secret|203\.0\.113/)
})

import { readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { ask, start, token } from './ask.ts'
import { prepareDatabase } from './database.ts'
import { connectRaw, rawPost } from './raw-client.ts'

/** Every sample by its name and labels as they are written; throws where a line is neither a sample nor a comment. */
function samplesIn(text: string): Map<string, number> {
  expect(text.endsWith('\n')).toBe(true)
  const samples = new Map<string, number>()
  const typed = new Set<string>()
  for (const line of text.slice(0, -1).split('\n')) {
    const type = /^# TYPE (\w+) (counter|gauge|histogram)$/.exec(line)
    if (type) typed.add(type[1] as string)
    if (line === '' || line.startsWith('#')) continue
    const [, name, labels = '', value] =
      /^(\w+)(\{\w+="[^"\\\n]*"(?:,\w+="[^"\\\n]*")*\})? (\d\S*)$/.exec(line) ?? []
    if (name === undefined || value === undefined) throw new Error(`no sample: ${line}`)
    expect([...typed].some(each => name === each || name.replace(/_(bucket|sum|count)$/, '') === each)).toBe(
      true,
    )
    expect(samples.has(name + labels)).toBe(false)
    samples.set(name + labels, Number(value))
  }
  return samples
}

test('the figures are those of all threads together', async () => {
  await using database = await prepareDatabase()
  const file = database.url.replace(/^file:/, '')
  // Of a token in the store it would be written down that it was used: a change as well.
  await using program = await start({ HTTP_THREADS: '3' }, { databaseUrl: database.url })
  // The system spreads connections over the threads by their ports: with this many, none is left out.
  const clients = await Promise.all(Array.from({ length: 40 }, () => connectRaw(program.url)))
  await Promise.all(
    clients.map(async (client, index) => {
      for (const id of [index, 1000 + index, index]) {
        client.send(rawPost(token, `{"id": ${id}, "name": "n"}`))
        await client.answer()
      }
    }),
  )

  const figures = () => ask(program, 'GET /metrics')
  const answer = await figures()
  expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
  const samples = samplesIn(answer.text)
  const created = 'method="POST",route="/plants",status="200"'
  const refused = 'method="POST",route="/plants",status="400"'
  expect(samples.get(`http_requests_total{${created}}`)).toBe(80)
  expect(samples.get(`http_requests_total{${refused}}`)).toBe(40)
  expect(samples.get(`http_request_duration_seconds_count{${created}}`)).toBe(80)
  expect(samples.get(`http_request_duration_seconds_bucket{${created},le="+Inf"}`)).toBe(80)
  expect(samples.get(`http_request_duration_seconds_sum{${created}}`)).toBeGreaterThan(0)
  const buckets = [...samples].filter(([name]) =>
    name.startsWith(`http_request_duration_seconds_bucket{${created}`),
  )
  expect(buckets.length).toBeGreaterThan(10)
  const counts = buckets.map(([, count]) => count)
  expect(counts).toEqual([...counts].sort((a, b) => a - b))
  expect(samples.get('plant_store_waiting_changes')).toBe(0)
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  expect(samples.get(`plant_store_build_info{version="${version}"}`)).toBe(1)
  expect(samples.get('plant_store_ready')).toBe(1)
  // The clients', and those that ask for the figures.
  expect(samples.get('http_connections_open')).toBeGreaterThanOrEqual(40)
  expect(samples.get('http_connections_open')).toBeLessThanOrEqual(44)
  const files = readdirSync(dirname(file)).map(name => statSync(join(dirname(file), name)).size)
  expect(samples.get('plant_store_size_bytes')).toBe(files.reduce((sum, size) => sum + size))
  // Each change was in exactly one commit, whichever threads shared it.
  expect(samples.get('plant_store_commit_changes_sum')).toBe(120)
  expect(samples.get('plant_store_commit_seconds_count')).toBe(
    samples.get('plant_store_commit_changes_count'),
  )
  expect(samples.get('plant_store_commit_seconds_sum')).toBeGreaterThan(0)
  for (const thread of [0, 1, 2, 3]) {
    expect(samples.get(`nodejs_eventloop_lag_max_seconds{thread="${thread}"}`)).toBeGreaterThanOrEqual(0)
  }
  expect(samples.get('process_cpu_user_seconds_total')).toBeGreaterThan(0)
  expect(samples.get('process_resident_memory_bytes')).toBeGreaterThan(10_000_000)
  expect(Math.abs(Date.now() / 1000 - (samples.get('process_start_time_seconds') ?? 0))).toBeLessThan(60)

  expect((await fetch(`${program.url}/metrics`)).status).toBe(401)
  for (const client of clients) client.socket.destroy()
  const open = async () => samplesIn((await figures()).text).get('http_connections_open')
  await expect.poll(open).toBeLessThanOrEqual(4)
  expect(await program.end('SIGTERM')).toBe(0)
})

test('every answer names its request: as its sender does where that is fit to be repeated, and else by a name that no other has', async () => {
  await using program = await start({ HTTP_THREADS: '2' })
  await using other = await start({ HTTP_THREADS: '2' })
  const send = async (line: string, more = '') => {
    const client = await connectRaw(program.url)
    client.send(`${line} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n${more}\r\n`)
    const answer = await client.answer()
    client.socket.destroy()
    return [answer?.status, answer?.headers.get('x-request-id')] as const
  }
  const authorized = `Authorization: Bearer ${token}\r\n`
  const requests = [
    [200, 'GET /healthz', ''],
    [200, 'GET /openapi.json', ''],
    [200, 'GET /plants', authorized],
    [400, 'GET /plants/x', authorized],
    [400, 'GET /%', authorized],
    [400, 'GET /healthz', 'Host: again\r\n'],
    [401, 'GET /plants', ''],
    [404, 'GET /nowhere', authorized],
    [405, 'POST /healthz', ''],
    [415, 'POST /plants', `${authorized}Content-Type: text/plain\r\nContent-Length: 2\r\n`],
    [417, 'GET /plants', 'Expect: miracles\r\n'],
  ] as const
  const own = new Set<string | undefined>()
  for (const [status, line, more] of requests) {
    expect(await send(line, `${more}X-Request-Id: 7b/caller:1.2_3\r\n`)).toEqual([status, '7b/caller:1.2_3'])
    const [, id] = await send(line, more)
    expect(id).toMatch(/^[\w-]{8,40}$/)
    own.add(id)
  }
  const unfit = ['', 'a b', 'a,b', '<a>', 'ä', 'x'.repeat(129), '"', 'a\tb', 'one\r\nX-Request-Id: two']
  for (const given of unfit) {
    const [, id] = await send('GET /healthz', `X-Request-Id: ${given}\r\n`)
    expect(id).toMatch(/^[\w-]{8,40}$/)
    own.add(id)
  }
  const urls = [program, other].flatMap(({ url }) => new Array<string>(50).fill(`${url}/healthz`))
  for (const { headers } of await Promise.all(urls.map(url => fetch(url))))
    own.add(`${headers.get('x-request-id')}`)
  expect(own.size).toBe(requests.length + unfit.length + urls.length)
})

test('the log has a line for each request and never a token or a body, whatever is sent', async () => {
  await using database = await prepareDatabase()
  const { full, readOnly, expired } = database.tokens
  const bad = 'plantstore_a-token-that-nobody-has'
  const bodies = [
    'secret-of-a-plant',
    'secret-tag',
    'secret-in-broken-json',
    'secret-twice',
    'secret-extra',
    'secret-query',
    'secret-cookie',
  ]
  await using program = await start({ LOG_LEVEL: 'trace' }, { databaseUrl: database.url })
  const cookie = 'session=secret-cookie'
  const send = async (target: string, bearer: string, body: string | null = null) =>
    (await ask(program, target, { token: bearer, headers: { cookie }, body })).status
  const statuses = [
    await send('POST /plants', full, '{"id": 1, "name": "secret-of-a-plant", "tag": "secret-tag"}'),
    await send('POST /plants', token, '{"id": 1, "name": "secret-of-a-plant"}'),
    await send('POST /plants', full, '{"id": "secret-of-a-plant", "name": 5}'),
    await send('POST /plants', full, 'secret-in-broken-json'),
    await send('POST /plants', full, '{"id": 2, "secret-twice": 1, "secret-twice": 2, "name": "n"}'),
    await send('PUT /plants/3', full, '{"name": "secret-of-a-plant", "secret-extra": "secret-extra"}'),
    await send('GET /plants?tag=secret-query', full),
    await send(`GET /plants?access_token=${full}`, full),
    await send('GET /plants', bad),
    await send('GET /plants', expired),
    await send('POST /plants', readOnly, '{"id": 9, "name": "secret-of-a-plant"}'),
    await send('POST /plants', `${full} ${full}`, '{"id": 9, "name": "secret-of-a-plant"}'),
    (
      await ask(program, 'POST /plants', {
        token: full,
        headers: { 'content-type': 'text/plain' },
        body: 'secret-of-a-plant',
      })
    ).status,
    await send(`GET /${full}`, full),
  ]
  expect(statuses).toEqual([200, 400, 400, 400, 400, 200, 200, 200, 401, 401, 403, 401, 415, 404])
  const broken = await connectRaw(program.url)
  broken.send(
    `POST /plants HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer ${full}\r\nsecret-of-a-plant\r\n\r\n`,
  )
  expect(await broken.answer()).toMatchObject({ status: 400 })
  expect(await program.end('SIGTERM')).toBe(0)

  const answered = program.log.filter(({ msg }) => msg === 'answered')
  // And the broken one.
  expect(answered).toHaveLength(statuses.length + 1)
  // The lines of two threads may come in either order.
  expect(answered.find(({ status, plantId }) => status === 200 && plantId === '1')).toEqual({
    level: 'info',
    time: expect.any(Number),
    reqId: expect.stringMatching(/^[\w-]{8,40}$/),
    client: '127.0.0.1',
    method: 'POST',
    route: '/plants',
    status: 200,
    token: 'full',
    plantId: '1',
    ms: expect.any(Number),
    msg: 'answered',
  })
  const text = JSON.stringify(program.log)
  for (const secret of [full, readOnly, expired, token, bad, ...bodies]) {
    expect(text).not.toContain(secret)
    expect(text).not.toContain(secret.replace('plantstore_', ''))
  }
})

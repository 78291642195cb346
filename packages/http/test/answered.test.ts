import { AsyncLocalStorage } from 'node:async_hooks'
import { once } from 'node:events'
import { assertFailure, plantRequest, toJson } from '@plant-store/contract'
import { parsePlant, type Version } from '@plant-store/domain'
import { createMemoryPlantRepository } from '@plant-store/domain/testing'
import { describe, expect, test } from 'vitest'
import { heldInserts, type Service, startService } from './memory-service.ts'

/** These tests compare each answer with its line in the log. */

test('the create of a client that left is logged with its plant', async () => {
  let begun = 0
  using held = heldInserts(() => {
    begun++
  })
  await using service = await startService({ plants: held.plants })
  const clients = await service.connectMany(3)
  for (const [n, { socket }] of clients.entries()) {
    socket
      .resume()
      .write(plantRequest(service.client, toJson({ id: BigInt(n), name: 'n' })))
  }
  await expect.poll(() => begun).toBe(3)
  const leave = ['end', 'destroy', 'resetAndDestroy'] as const
  const gone = clients.map(({ socket, served }, n) => {
    socket[leave[n] as (typeof leave)[number]]()
    return new Promise(resolve =>
      served
        .on('error', () => {})
        .once('end', resolve)
        .once('close', resolve),
    )
  })
  await Promise.all(gone)
  held.letGo()
  const line = {
    method: 'POST',
    route: '/plants',
    status: 200,
    token: 'full',
    client: '127.0.0.1',
  }
  await expect.poll(() => service.answered).toHaveLength(3)
  for (const answered of service.answered) {
    expect(answered).toMatchObject(line)
  }
  expect(new Set(service.answered.map(({ plantId }) => plantId)).size).toBe(3)
  for (const { socket } of clients) {
    socket.destroy()
  }
})

test('an answer has no member that its schema does not declare', async () => {
  const plant = Object.assign(parsePlant({ id: 1n, name: 'n' }), { secret: 's' })
  await using service = await startService({
    plants: { find: async () => ({ plant, version: '1' as Version }) },
  })

  const answer = await service.client.ask('GET', '/plants/1')

  expect(`${answer.body}`).toBe('{"id":1,"name":"n"}')
})

test('a PUT whose body is no JSON is logged with the plant of its path', async () => {
  await using service = await startService()
  assertFailure(await service.client.ask('PUT', '/plants/7', { body: '{' }), 40001)
  await expect
    .poll(() => service.answered)
    .toEqual([expect.objectContaining({ error: 40001, plantId: '7' })])
})

test('a connection that has sent nothing in time ends without a line', async () => {
  await using service = await startService({
    limits: { headersTimeoutMs: 200, requestTimeoutMs: 200 },
  })
  using spare = await service.connect()

  const bytes = await spare.socket.toArray()

  expect(bytes).toEqual([])
  expect(service.answered).toEqual([])
})

test('a body that breaks while its token is looked up gets its answer', async () => {
  await using service = await startService()
  const { client, tokens } = service
  const asked = client.asked('POST /plants')
  const head = [
    'POST /plants HTTP/1.1',
    'host: h',
    // A token that was not looked up yet, so that the body breaks before it is read.
    `authorization: Bearer ${tokens.writeOnly}`,
    'content-type: application/json',
    'transfer-encoding: chunked',
  ]

  const answer = await client.exchange(asked, `${head.join('\r\n')}\r\n\r\nzz\r\n`)

  assertFailure(answer, 40000)
})

describe('a refusal below the routes is a whole answer, the last on its connection, and logged once:', () => {
  const chunked = ({ tokens }: Service) =>
    `POST /plants HTTP/1.1\r\nhost: h\r\nauthorization: Bearer ${tokens.full}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`
  const late = 'the request did not arrive in time'
  const malformed = 'the request is not well-formed HTTP'
  const uncoded = 'The request target is not correctly percent-encoded UTF-8'
  const fields = 'the header fields are too large'
  const extensions = 'the chunk extensions of the body are too large'
  const cases: [
    string,
    number,
    string,
    string | undefined,
    (service: Service) => string,
  ][] = [
    ['what is no HTTP', 40000, malformed, undefined, () => 'rubbish\r\n\r\n'],
    [
      'large header fields',
      43101,
      fields,
      undefined,
      () => `GET / HTTP/1.1\r\nx: ${'y'.repeat(20_000)}`,
    ],
    [
      'a header section that does not end',
      40801,
      late,
      undefined,
      () => 'GET / HTTP/1.1\r\nhost: ',
    ],
    ['a body that does not end', 40801, late, 'POST', chunked],
    [
      'a body that is no body',
      40000,
      malformed,
      'POST',
      service => `${chunked(service)}zz\r\n`,
    ],
    [
      'chunk extensions',
      41301,
      extensions,
      'POST',
      service => `${chunked(service)}1;${'x'.repeat(20_000)}`,
    ],
    [
      'CONNECT',
      40501,
      'this server is not a proxy',
      'CONNECT',
      () => 'CONNECT h:1 HTTP/1.1\r\nhost: h\r\n\r\n',
    ],
    [
      'a wrongly encoded target',
      40006,
      uncoded,
      'GET',
      () => 'GET /% HTTP/1.1\r\nhost: h\r\n\r\n',
    ],
  ]
  test.concurrent.each(cases)('%s', async (_name, error, message, method, given) => {
    await using service = await startService({
      limits: { headersTimeoutMs: 300, requestTimeoutMs: 600 },
    })
    using both = await service.connect()
    const closed = once(both.served, 'close')
    both.socket.write(given(service))
    const bytes: Buffer[] = await both.socket.toArray()
    const [head = '', body = ''] = `${Buffer.concat(bytes)}`.split('\r\n\r\n')
    expect(JSON.parse(body)).toEqual({ error, message })
    const [status = '', ...lines] = head.split('\r\n')
    const fields = Object.fromEntries(
      lines.map(line => line.replace(/^Date/, 'date').split(/: (.*)/, 2)),
    )
    expect(status).toMatch(`HTTP/1.1 ${Math.floor(error / 100)} `)
    expect(fields).toEqual({
      date: expect.any(String),
      'x-request-id': expect.stringMatching(/^[\w-]{8,40}$/),
      'content-type': 'application/json',
      'content-length': `${body.length}`,
      connection: 'close',
      ...(method === 'CONNECT' && { allow: '' }),
    })
    expect(Math.abs(Date.parse(fields['date']) - Date.now())).toBeLessThan(60_000)
    both.socket.destroy()
    await closed
    const line = {
      reqId: fields['x-request-id'],
      method,
      status: Math.floor(error / 100),
      error,
      client: '127.0.0.1',
    }
    expect(service.answered).toMatchObject([line])
  })
})

test('a request that its client names is answered and logged by this name, if it is safe', async () => {
  await using service = await startService()
  const names: unknown[] = []
  for (const [given, isKept] of [
    ['x'.repeat(128), true],
    ['aZ09_.:/+=@-', true],
    ['x'.repeat(129), false],
    ['a b', false],
    ['a"', false],
    ['"a', false],
  ] as const) {
    const answer = await service.client.ask('GET', '/plants', {
      headers: { 'x-request-id': given },
    })
    const name = answer.headers.get('x-request-id')
    if (isKept) {
      expect(name).toBe(given)
    } else {
      expect(name).toMatch(/^[\w-]{11}-[\da-z]+$/)
    }
    names.push(name)
  }
  await expect.poll(() => service.answered.map(({ reqId }) => reqId)).toEqual(names)
})

test('sixteen trusted proxies in a row are believed, and no more', async () => {
  await using service = await startService({
    trustedProxies: ['127.0.0.1', '10.0.0.0/8'],
  })
  const forwarded = Array.from({ length: 40 }, (_, n) => `10.0.0.${n + 1}`).join(', ')
  await service.client.ask('GET', '/healthz', {
    headers: { 'x-forwarded-for': forwarded },
  })
  await expect.poll(() => service.answered).toMatchObject([{ client: '10.0.0.25' }])
})

test('a request is handled within its trace, which ends with its answer', async () => {
  const current = new AsyncLocalStorage<string>()
  const memory = createMemoryPlantRepository()
  const begun: unknown[] = []
  const ended: unknown[] = []
  const within: unknown[] = []
  await using service = await startService({
    plants: {
      insert(plant) {
        within.push(current.getStore())
        return memory.insert(plant)
      },
    },
    traceRequest({ method, headers }) {
      begun.push([method, headers['traceparent']])
      return {
        traceId: 'this',
        run: handle => current.run('this', handle),
        end: each => ended.push(each),
      }
    },
  })
  const body = toJson({ id: 1n, name: 'n' })
  await service.client.ask('POST', '/plants', { body, headers: { traceparent: 'that' } })
  await expect
    .poll(() => service.answered)
    .toMatchObject([{ status: 200, traceId: 'this' }])
  const { ms = 0 } = service.answered[0] ?? {}
  expect(ms).toBeGreaterThan(0)
  expect(ms).toBeLessThan(60_000)
  expect(ms).toBe(Math.round(ms * 1000) / 1000)
  expect([begun, within]).toEqual([[['POST', 'that']], ['this']])
  expect(ended).toEqual([{ method: 'POST', route: '/plants', status: 200 }])
})

import { AsyncLocalStorage } from 'node:async_hooks'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { assertFailure, plantRequest, toJson } from '@plant-store/contract'
import { createMemoryPlantRepository } from '@plant-store/domain/testing'
import { describe, expect, test } from 'vitest'
import {
  heldInserts,
  type MemoryServiceOptions,
  type ServiceWithClient,
  startWithClient,
} from './memory-service.ts'

/** What is said of each request: in its answer and in the log. */

/** The request for the description is forgotten. */
async function start(options: MemoryServiceOptions = {}) {
  const service = await startWithClient(options)
  await expect.poll(() => service.answered).toHaveLength(1)
  service.answered.length = 0
  return service
}

const leave: Record<string, (socket: Socket) => void> = {
  'says that it sends no more (FIN)': socket => socket.end(),
  closes: socket => socket.destroy(),
  'resets the connection (RST)': socket => socket.resetAndDestroy(),
}

describe.each(Object.entries(leave))('a client that %s right after its request', (_name, go) => {
  const count = 50

  test('leaves a line in the log for each plant that it made', async () => {
    const allBegun = Promise.withResolvers<void>()
    let begun = 0
    const { plants, letGo } = heldInserts(() => {
      if (++begun === count) allBegun.resolve()
    })
    await using server = await start({ plants })
    const seen: Promise<unknown>[] = []
    server.server.server.on('connection', (socket: Socket) => {
      socket.on('error', () => {})
      seen.push(new Promise(resolve => socket.once('end', resolve).once('close', resolve)))
    })
    const sockets = await Promise.all(
      Array.from({ length: count }, async (_, n) => {
        const socket = server.connect({ allowHalfOpen: true }).resume()
        await once(socket, 'connect')
        socket.write(plantRequest(server.client, toJson({ id: BigInt(n), name: 'n' })))
        return socket
      }),
    )
    await allBegun.promise
    for (const socket of sockets) go(socket)
    await Promise.all(seen)
    expect(seen).toHaveLength(count)
    letGo()

    const line = { method: 'POST', route: '/plants', status: 200, token: 'full', client: '127.0.0.1' }
    await expect.poll(() => server.answered).toHaveLength(count)
    for (const answered of server.answered) expect(answered).toMatchObject(line)
    expect(new Set(server.answered.map(({ plantId }) => plantId)).size).toBe(count)
    for (const socket of sockets) socket.destroy()
  })
})

test('a PUT whose body is no JSON is logged with the plant of its path', async () => {
  await using server = await start()
  assertFailure(await server.client.ask('PUT', '/plants/7', { body: '{' }), 40001)
  await expect.poll(() => server.answered).toEqual([expect.objectContaining({ error: 40001, plantId: '7' })])
})

test.each([
  ['rubbish\r\n\r\n', '400 Bad Request', '', 40000, 'the request is not well-formed HTTP'],
  [
    `GET / HTTP/1.1\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`,
    '431 Request Header Fields Too Large',
    '',
    43101,
    'the header fields are too large',
  ],
  ['GET / HTTP/1.1\r\nx: ', '408 Request Timeout', '', 40801, 'the request did not arrive in time'],
  [
    'CONNECT h:1 HTTP/1.1\r\nhost: h\r\n\r\n',
    '405 Method Not Allowed',
    'allow: \r\n',
    40501,
    'this server is not a proxy',
  ],
])(
  'a refusal below the routes is a whole answer, and the last on its connection: %#',
  async (sent, status, fields, error, message) => {
    await using server = await start({ limits: { headersTimeoutMs: 300 } })
    const socket = server.connect({ allowHalfOpen: true })
    socket.write(sent)
    const pieces: Buffer[] = await socket.toArray()
    const body = JSON.stringify({ error, message })
    const [head, rest] = `${Buffer.concat(pieces)}`.split('\r\n\r\n')
    expect(`${head?.replace(/(date|x-request-id): .+/g, '$1')}\r\n`).toBe(
      `HTTP/1.1 ${status}\r\ndate\r\n${fields}x-request-id\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\nconnection: close\r\n`,
    )
    expect(rest).toBe(body)
    expect(Math.abs(Date.parse(/date: (.+)/.exec(`${head}`)?.[1] ?? '') - Date.now())).toBeLessThan(60_000)
    expect(server.answered).toMatchObject([{ error, route: undefined, ms: 0 }])
  },
)

test.each([
  ['x'.repeat(128), true],
  ['aZ09_.:/+=@-', true],
  ['x'.repeat(129), false],
  ['a b', false],
  ['a"', false],
  ['"a', false],
])('a request that the client names %s is answered and logged by one name', async (given, isKept) => {
  await using server = await start()
  const answer = await server.client.ask('GET', '/plants', { headers: { 'x-request-id': given } })
  const name = answer.headers.get('x-request-id')
  if (isKept) expect(name).toBe(given)
  else expect(name).toMatch(/^[\w-]{11}-[\da-z]+$/)
  await expect.poll(() => server.answered.map(({ reqId }) => reqId)).toEqual([name])
})

test('of proxies in a row that are trusted, sixteen are believed', async () => {
  await using server = await start({ trustedProxies: ['127.0.0.1', '10.0.0.0/8'] })
  const forwarded = Array.from({ length: 40 }, (_, n) => `10.0.0.${n + 1}`).join(', ')
  await server.client.ask('GET', '/healthz', { headers: { 'x-forwarded-for': forwarded } })
  await expect.poll(() => server.answered).toMatchObject([{ client: '10.0.0.25' }])
})

test('a request is answered within its trace, which ends with what was answered', async () => {
  const current = new AsyncLocalStorage<string>()
  const memory = createMemoryPlantRepository()
  const begun: unknown[] = []
  const ended: unknown[] = []
  const within: unknown[] = []
  await using server = await start({
    plants: {
      insert(plant) {
        within.push(current.getStore())
        return memory.insert(plant)
      },
    },
    traceRequest({ method, headers }) {
      begun.push([method, headers['traceparent']])
      return { traceId: 'this', run: handle => current.run('this', handle), end: each => ended.push(each) }
    },
  })
  begun.length = 0
  ended.length = 0
  const body = toJson({ id: 1n, name: 'n' })
  await server.client.ask('POST', '/plants', { body, headers: { traceparent: 'that' } })
  await expect.poll(() => server.answered).toMatchObject([{ status: 200, traceId: 'this' }])
  const { ms = 0 } = server.answered[0] ?? {}
  expect(ms).toBeGreaterThan(0)
  expect(ms).toBeLessThan(60_000)
  expect(ms).toBe(Math.round(ms * 1000) / 1000)
  expect([begun, within]).toEqual([[['POST', 'that']], ['this']])
  expect(ended).toEqual([{ method: 'POST', route: '/plants', status: 200 }])
})

describe('a refusal below the routes is named and logged once:', () => {
  const limits = { headerBytesMax: 2_000, headersTimeoutMs: 300, requestTimeoutMs: 600 }
  const chunked = (server: ServiceWithClient) =>
    `POST ${server.client.target('/plants')} HTTP/1.1\r\nhost: h\r\nauthorization: Bearer ${server.tokens.full}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`
  type Given = (server: ServiceWithClient) => string
  const cases: [string, number, string | undefined, Given][] = [
    ['what is no HTTP', 40000, undefined, () => 'rubbish\r\n\r\n'],
    [
      'a header section that is too large',
      43101,
      undefined,
      () => `GET / HTTP/1.1\r\nx: ${'y'.repeat(3_000)}\r\n\r\n`,
    ],
    ['a header section that does not end', 40801, undefined, () => 'GET /healthz HTTP/1.1\r\nhost: '],
    ['a body that does not end', 40801, 'POST', server => chunked(server)],
    ['a body that is no body', 40000, 'POST', server => `${chunked(server)}zz\r\n`],
    [
      'chunk extensions that are too large',
      41301,
      'POST',
      server => `${chunked(server)}1;${'x'.repeat(20_000)}\r\n`,
    ],
    ['CONNECT', 40501, 'CONNECT', () => 'CONNECT h:1 HTTP/1.1\r\nhost: h\r\n\r\n'],
    ['an expectation', 41701, 'GET', () => 'GET /healthz HTTP/1.1\r\nhost: h\r\nexpect: a miracle\r\n\r\n'],
    ['a target that is wrongly encoded', 40006, 'GET', () => 'GET /% HTTP/1.1\r\nhost: h\r\n\r\n'],
    ['no Host', 40007, 'GET', () => 'GET /healthz HTTP/1.1\r\n\r\n'],
    ['another version of HTTP', 40000, 'GET', () => 'GET /healthz HTTP/2.0\r\nhost: h\r\n\r\n'],
  ]
  test.each(cases)('%s', async (_name, error, method, given) => {
    await using server = await start({ limits })
    const closed = nextConnectionClosed(server)
    using wire = await server.client.open()
    wire.send(given(server))
    const answer = await wire.answer(undefined)
    assertFailure(answer, error)
    const status = Math.floor(error / 100)
    await expect.poll(() => server.answered).toHaveLength(1)
    wire[Symbol.dispose]()
    await closed
    expect(server.answered).toEqual([
      expect.objectContaining({
        reqId: answer.headers.get('x-request-id'),
        status,
        error,
        client: '127.0.0.1',
      }),
    ])
    expect(server.answered[0]?.method).toBe(method)
  })

  test('a connection too many', async () => {
    // The one that the description was read on is still open.
    await using server = await start({ limits: { connectionsMax: 1 } })
    using second = await server.client.open()
    const answer = await second.answer(undefined)
    assertFailure(answer, 50304, /^the server is at its connection limit: try again later$/)
    const reqId = answer.headers.get('x-request-id')
    expect(reqId).toMatch(/^[\w-]{8,40}$/)
    expect(server.answered).toEqual([expect.objectContaining({ reqId, status: 503 })])
  })
})

/** Resolves once the next connection that the server accepts is closed. */
const nextConnectionClosed = (service: ServiceWithClient) =>
  new Promise(resolve =>
    service.server.server.once('connection', (socket: Socket) => socket.once('close', resolve)),
  )

import { AsyncLocalStorage } from 'node:async_hooks'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { parsePlant } from '@plant-store/domain'
import { createMemoryPlantRepository } from '@plant-store/domain/testing'
import { assertFailure, plantRequest, toJson } from '@plant-store/http/testing'
import { afterAll, expect, test, vi } from 'vitest'
import { requestId } from '../src/request/log.ts'
import { pausedInserts, startService, versioned } from './memory-service.ts'

/** These tests compare each answer with its line in the log. */

const shared = await startService()
const { client } = shared
afterAll(() => shared[Symbol.asyncDispose]())

test('the create of a client that left is logged with its plant', async () => {
  const onInsert = vi.fn()
  using inserts = pausedInserts(onInsert)
  await using service = await startService({ plants: inserts.plants })
  const clients = await service.connectMany(3)
  for (const [id, { socket }] of clients.entries()) {
    const request = plantRequest(service.client, `{"id":${id},"name":"n"}`)
    socket.resume().write(request)
  }
  await expect.poll(() => onInsert.mock.calls).toHaveLength(3)

  const gone = clients.map(({ served }) => hasLeft(served))
  clients[0]?.socket.end()
  clients[1]?.socket.destroy()
  clients[2]?.socket.resetAndDestroy()
  await Promise.all(gone)
  inserts.resume()

  const line = {
    method: 'POST',
    route: '/plants',
    status: 200,
    token: 'full',
    client: '127.0.0.1',
  }
  await expect.poll(() => service.answered).toHaveLength(3)
  expect(service.answered).toMatchObject([line, line, line])
  const plantIds = service.answered.map(({ plantId }) => plantId)
  expect(plantIds.toSorted()).toEqual(['0', '1', '2'])
})

/** Resolves once the server knows that its client left. */
function hasLeft(served: Socket): Promise<unknown> {
  served.on('error', () => {})
  return new Promise(resolve => served.once('end', resolve).once('close', resolve))
}

test('an answer has no member that its schema does not declare', async () => {
  const plant = Object.assign(parsePlant({ id: 1n, name: 'n' }), { secret: 's' })
  const find = async () => versioned(plant)
  await using service = await startService({ plants: { find } })

  const answer = await service.client.ask('GET', '/plants/1')

  expect(`${answer.body}`).toBe('{"id":1,"name":"n"}')
})

test('a connection that has sent nothing in time ends without a line', async () => {
  await using service = await startService({
    limits: { headersTimeoutMs: 200, requestTimeoutMs: 200 },
  })
  const spare = await service.connect()

  const bytes = await spare.socket.toArray()

  expect(bytes).toEqual([])
  expect(service.answered).toEqual([])
})

const chunked = `${plantRequest(client, '', ['transfer-encoding: chunked'])}`
const malformed = 'the request is not well-formed HTTP'

/** The method is that of the log. It is absent if the server did not read one. */
test.concurrent.for<
  [why: string, sent: string, error: number, message: string, method?: string]
>([
  ['what is no HTTP', 'rubbish\r\n\r\n', 40000, malformed],
  [
    'large header fields',
    `GET / HTTP/1.1\r\nx: ${'y'.repeat(20_000)}`,
    43101,
    'the header fields are too large',
  ],
  ['a body that is no body', `${chunked}zz\r\n`, 40000, malformed, 'POST'],
  [
    'chunk extensions',
    `${chunked}1;${'x'.repeat(20_000)}`,
    41301,
    'the chunk extensions of the body are too large',
    'POST',
  ],
  [
    'CONNECT',
    'CONNECT h:1 HTTP/1.1\r\nhost: h\r\n\r\n',
    40501,
    'this server is not a proxy',
    'CONNECT',
  ],
  [
    'a wrongly encoded target',
    'GET /% HTTP/1.1\r\nhost: h\r\n\r\n',
    40006,
    'The request target is not correctly percent-encoded UTF-8',
    'GET',
  ],
])(
  'a refusal below the routes is whole, last and logged once: %s',
  async (row, { expect }) => {
    const [, sent, error, message, method] = row
    const status = Math.floor(error / 100)
    const socket = shared.open({ allowHalfOpen: true })

    socket.write(sent)
    const bytes: Buffer[] = await socket.toArray()
    socket.destroy()
    const [head = '', body = ''] = `${Buffer.concat(bytes)}`.split('\r\n\r\n')
    const [statusLine, ...lines] = head.split('\r\n')
    const entries = lines.map(line => line.replace(/^Date/, 'date').split(/: (.*)/, 2))
    const fields = Object.fromEntries(entries)

    expect(JSON.parse(body)).toEqual({ error, message })
    expect(statusLine).toMatch(`HTTP/1.1 ${status} `)
    expect(fields).toEqual({
      date: expect.any(String),
      'cache-control': 'no-store',
      'x-request-id': expect.stringMatching(/^[\w-]{8,40}$/),
      'content-type': 'application/json',
      'content-length': `${body.length}`,
      connection: 'close',
      ...(method === 'CONNECT' && { allow: '' }),
    })
    const ageMs = Date.now() - Date.parse(fields['date'])
    expect(Math.abs(ageMs)).toBeLessThan(60_000)

    const reqId = fields['x-request-id']
    await expect
      .poll(() => shared.answered.filter(line => line.reqId === reqId))
      .toMatchObject([{ method, status, error, client: '127.0.0.1' }])
  },
)

test('a request id that is sent is kept in the answer and the log', async () => {
  const reqId = 'aZ09_.:/+=@-'

  const answer = await client.ask('PUT', '/plants/7', {
    headers: { 'x-request-id': reqId },
    body: '{',
  })

  assertFailure(answer, 40001)
  expect(answer.headers.get('x-request-id')).toBe(reqId)
  // The line names the plant of the path, although the error is in the body.
  await expect
    .poll(() => shared.answered.find(line => line.reqId === reqId))
    .toMatchObject({ error: 40001, plantId: '7' })
})

test('a request id that is too long or unsafe is replaced', () => {
  const idOf = (id: string) =>
    requestId({ headers: { 'x-request-id': id } } as unknown as IncomingMessage)

  expect(idOf('x'.repeat(128))).toBe('x'.repeat(128))
  for (const id of ['x'.repeat(129), 'a b', 'a"', '"a']) {
    expect(idOf(id), id).toMatch(/^[\w-]{11}-[\da-z]+$/)
  }
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

  await service.client.ask('POST', '/plants', {
    headers: { traceparent: 'that' },
    body: toJson({ id: 1n, name: 'n' }),
  })

  await expect
    .poll(() => service.answered)
    .toMatchObject([{ status: 200, traceId: 'this' }])
  const ms = service.answered[0]?.ms ?? 0
  expect(ms).toBeGreaterThan(0)
  expect(ms).toBeLessThan(60_000)
  expect(ms).toBe(Math.round(ms * 1000) / 1000)
  expect(begun).toEqual([['POST', 'that']])
  expect(within).toEqual(['this'])
  expect(ended).toEqual([{ method: 'POST', route: '/plants', status: 200 }])
})

import { AsyncLocalStorage } from 'node:async_hooks'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { parsePlant } from '@plant-store/domain'
import { createMemoryPlantRepository } from '@plant-store/domain/testing'
import { assertFailure, plantRequest, toJson } from '@plant-store/http/testing'
import { describe, expect, test, vi } from 'vitest'
import { requestId } from '../src/request/log.ts'
import { pausedInserts, type Service, startService, versioned } from './memory-service.ts'

/** These tests compare each answer with its line in the log. */

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
  for (const { socket } of clients) {
    socket.destroy()
  }
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

test('a PUT whose body is no JSON is logged with the plant of its path', async () => {
  await using service = await startService()

  const answer = await service.client.ask('PUT', '/plants/7', { body: '{' })

  assertFailure(answer, 40001)
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

describe('a refusal below the routes is whole, last and logged once:', () => {
  const chunked = ({ tokens }: Service) => {
    const head = [
      'POST /plants HTTP/1.1',
      'host: h',
      `authorization: Bearer ${tokens.full}`,
      'content-type: application/json',
      'transfer-encoding: chunked',
    ]
    return `${head.join('\r\n')}\r\n\r\n`
  }
  const malformed = 'the request is not well-formed HTTP'

  type Refusal = readonly [
    why: string,
    send: (service: Service) => string,
    error: number,
    message: string,
    /** The method in the log. Absent if the server did not read one. */
    method: string | undefined,
  ]

  const refusals: readonly Refusal[] = [
    ['what is no HTTP', () => 'rubbish\r\n\r\n', 40000, malformed, undefined],
    [
      'large header fields',
      () => `GET / HTTP/1.1\r\nx: ${'y'.repeat(20_000)}`,
      43101,
      'the header fields are too large',
      undefined,
    ],
    [
      'a body that is no body',
      service => `${chunked(service)}zz\r\n`,
      40000,
      malformed,
      'POST',
    ],
    [
      'chunk extensions',
      service => `${chunked(service)}1;${'x'.repeat(20_000)}`,
      41301,
      'the chunk extensions of the body are too large',
      'POST',
    ],
    [
      'CONNECT',
      () => 'CONNECT h:1 HTTP/1.1\r\nhost: h\r\n\r\n',
      40501,
      'this server is not a proxy',
      'CONNECT',
    ],
    [
      'a wrongly encoded target',
      () => 'GET /% HTTP/1.1\r\nhost: h\r\n\r\n',
      40006,
      'The request target is not correctly percent-encoded UTF-8',
      'GET',
    ],
  ]
  test.concurrent.each(refusals)('%s', async (...refusal) => {
    const [, send, error, message, method] = refusal
    await using service = await startService()
    using both = await service.connect()
    const closed = once(both.served, 'close')

    both.socket.write(send(service))
    const bytes: Buffer[] = await both.socket.toArray()
    const [head = '', body = ''] = `${Buffer.concat(bytes)}`.split('\r\n\r\n')
    const [status = '', ...lines] = head.split('\r\n')
    const entries = lines.map(line => line.replace(/^Date/, 'date').split(/: (.*)/, 2))
    const fields = Object.fromEntries(entries)

    expect(JSON.parse(body)).toEqual({ error, message })
    expect(status).toMatch(`HTTP/1.1 ${Math.floor(error / 100)} `)
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

test('a request id that is sent is kept in the answer and the log', async () => {
  await using service = await startService()
  const id = 'aZ09_.:/+=@-'

  const answer = await service.client.ask('GET', '/plants', {
    headers: { 'x-request-id': id },
  })

  expect(answer.headers.get('x-request-id')).toBe(id)
  await expect.poll(() => service.answered).toMatchObject([{ reqId: id }])
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

import dns from 'node:dns'
import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { assertFailure, assertSuccess, plantRequest, toJson } from '@plant-store/contract'
import { DomainError } from '@plant-store/domain'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { connectionsOf } from '../src/connection/node-server.ts'
import { createPlants, heldInserts, type ServiceWithClient, startWithClient } from './memory-service.ts'

afterEach(() => void vi.useRealTimers())

test('a server starts with any two time limits, also with one that Node holds against the other', async () => {
  await using server = await startWithClient({ limits: { headersTimeoutMs: 400_000, requestTimeoutMs: 600 } })
  using wire = await server.client.open()
  wire.send('GET /healthz HTTP/1.1\r\nhost: ')
  assertFailure(await wire.answer(undefined), 40801)
})

test('an id of any length in a path is judged as one', async () => {
  await using server = await startWithClient()
  assertFailure(await server.client.askBare(`GET /plants/${'9'.repeat(1_000)}`), 40004, 'id')
})

test('connections beyond twice the limit are closed at once', async () => {
  await using server = await startWithClient({ limits: { connectionsMax: 3 } })
  const all = connectionsOf(server.server.server)
  const dropped = new Promise(resolve => server.server.server.once('drop', () => resolve(all.size)))
  const sockets = Array.from({ length: 12 }, () => server.connect({ allowHalfOpen: true }))
  expect(await dropped).toBe(6)
  for (const socket of sockets) socket.destroy()
})

test('localhost is one server, however many addresses it has', async () => {
  const realLookUp = dns.lookup
  const bothFamilies = (host: string, options: dns.LookupAllOptions, found: (...found: unknown[]) => void) =>
    host === 'localhost'
      ? found(null, [
          { address: '127.0.0.1', family: 4 },
          { address: '::1', family: 6 },
        ])
      : realLookUp(host, options, found)
  const lookUp = vi.spyOn(dns, 'lookup').mockImplementation(bothFamilies as typeof dns.lookup)
  try {
    await using server = await startWithClient({ host: 'localhost' })
    expect(server.server.addresses().map(each => (each as AddressInfo).address)).toEqual(['127.0.0.1'])
    const fields = ['host: h', 'expect: a miracle']
    const request = `GET /healthz HTTP/1.1\r\n${fields.join('\r\n')}\r\n\r\n`
    assertFailure(await server.client.exchange(server.client.asked('GET /healthz'), request), 41701)
  } finally {
    lookUp.mockRestore()
  }
})

const plant = toJson({ id: 1n, name: 'n' })

describe('a store that fails', () => {
  const unavailable = async () => {
    throw new DomainError('store-unavailable', 'the store could not be read', {
      cause: new Error('disk on fire'),
    })
  }
  const busy = async () => {
    throw new DomainError('store-busy', 'too many changes are waiting')
  }
  const broken = async () => {
    throw new TypeError('undefined is not a function, at /secret/path')
  }

  test('is told as 503 with Retry-After, whatever the operation', async () => {
    const plants = { insert: busy, save: busy, remove: busy, find: unavailable, page: unavailable }
    await using server = await startWithClient({ plants, check: unavailable })
    const { client } = server
    const answers = [
      [await client.ask('POST', '/plants', { body: plant }), 50301],
      [await client.ask('PUT', '/plants/1', { body: plant }), 50301],
      [await client.ask('DELETE', '/plants/1'), 50301],
      [await client.ask('GET', '/plants/1'), 50302],
      [await client.ask('GET', '/plants'), 50302],
      [await client.ask('GET', '/readyz', { token: null }), 50302],
    ] as const
    for (const [answer, error] of answers) {
      assertFailure(answer, error)
      expect(answer.headers.get('retry-after')).toBe('1')
      expect(`${answer.body}`).not.toContain('fire')
    }
    assertSuccess(await client.ask('GET', '/healthz', { token: null }), { status: 'ok' })
    assertFailure(await client.ask('GET', '/plants/x'), 40004)
    // As often as clients ask: above the level debug, the line of the request is all.
    expect(server.logged).toEqual([])
    const reasons = answers.map(([{ headers }]) => ({
      reqId: headers.get('x-request-id'),
      err: expect.any(DomainError),
    }))
    expect(server.debugged).toEqual(reasons)
  })

  test('is told as 500 when it is a defect, with the reason in the log only', async () => {
    const plants = { insert: broken, save: broken, remove: broken, find: broken, page: broken }
    await using server = await startWithClient({ plants, check: broken })
    const { client } = server
    const answers = [
      await client.ask('POST', '/plants', { body: plant }),
      await client.ask('PUT', '/plants/1', { body: plant }),
      await client.ask('DELETE', '/plants/1'),
      await client.ask('GET', '/plants/1'),
      await client.ask('GET', '/plants'),
      await client.ask('GET', '/readyz', { token: null }),
    ]
    for (const answer of answers) {
      assertFailure(answer, 50001)
      expect(`${answer.body}`).not.toMatch(/undefined|secret/)
    }
    expect(server.logged.map(([level]) => level)).toEqual(answers.map(() => 'error'))
    expect(server.logged.every(([, message]) => message.includes('/secret/path'))).toBe(true)
  })
})

describe('a connection', () => {
  test('on which rubbish follows a request is answered for the request first, however long that takes', async () => {
    const { plants, begun, letGo } = heldInserts()
    await using server = await startWithClient({ plants })
    using wire = await server.client.open()
    wire.send(plantRequest(server.client, plant))
    await begun
    // Every packet is one more error to Node's parser.
    for (const rubbish of ['rubbish', 'more rubbish']) {
      const refused = refusedBy(server)
      wire.send(`${rubbish}\r\n\r\n`)
      await refused
    }
    letGo()
    assertSuccess(await wire.answer(server.client.asked('POST /plants')), { name: 'n' })
    assertFailure(await wire.answer(undefined), 40000)
    expect(`${await wire.closed()}`).toBe('')
    const statuses = () => server.answered.map(({ status }) => status).sort()
    await expect.poll(statuses).toEqual([200, 200, 400])
  })

  test('that is refused for a late request ignores the rest of it', async () => {
    const { plants, begun, letGo } = heldInserts()
    const limits = { headersTimeoutMs: 200, requestTimeoutMs: 400 }
    await using server = await startWithClient({ plants, limits })
    const { client } = server
    using wire = await client.open()
    wire.send(plantRequest(client, plant))
    await begun
    const refused = refusedBy(server)
    wire.send('POST /plants HTTP/1.1\r\nhost: h\r\n')
    await refused
    wire.send('content-length: 2\r\n\r\n{}')
    await client.ask('GET', '/healthz')
    letGo()
    assertSuccess(await wire.answer(client.asked('POST /plants')), { name: 'n' })
    assertFailure(await wire.answer(undefined), 40801)
    expect(`${await wire.closed()}`).toBe('')
  })

  test('that is cut in the middle of a body is no defect of the server', async () => {
    await using server = await startWithClient()
    const { client } = server
    const others = await connections(server)
    const wire = await client.open()
    wire.send(plantRequest(client, plant, ['expect: 100-continue']).subarray(0, -3))
    expect(await wire.interim()).toBe(100)
    wire[Symbol.dispose]()
    await expect.poll(() => connections(server)).toBe(others)
    await nextTurn()
    expect(server.logged).toEqual([])
  })

  test('that is reset between two requests leaves nothing in the log', async () => {
    await using server = await startWithClient()
    const accepted = nextConnection(server)
    using socket = server.connect({ allowHalfOpen: true })
    const served = await accepted
    socket.write('GET /healthz HTTP/1.1\r\nhost: h\r\n\r\n')
    await once(socket, 'data')
    await expect.poll(() => server.answered).toHaveLength(2)
    socket.resetAndDestroy()
    await new Promise(resolve => served.once('close', resolve))
    expect(server.answered).toHaveLength(2)
    expect(server.logged).toEqual([])
  })

  test('that is reset in the middle of a body is logged as what it is', async () => {
    await using server = await startWithClient()
    using socket = server.connect({ allowHalfOpen: true })
    const fields = [`authorization: Bearer ${server.tokens.full}`, 'content-type: application/json']
    const head = [
      'POST /plants HTTP/1.1',
      'host: h',
      ...fields,
      'expect: 100-continue',
      'transfer-encoding: chunked',
    ]
    socket.write(`${head.join('\r\n')}\r\n\r\n5\r\n{"id"\r\n`)
    await once(socket, 'data')
    socket.resetAndDestroy()
    await expect.poll(() => server.answered.at(-1)).toMatchObject({ status: 400, error: 40000 })
    expect(server.logged).toEqual([])
  })

  test('whose body is too large gives the answer to a client that is still sending', async () => {
    await using server = await startWithClient()
    const bytes = 4 * 2 ** 20
    for (let time = 0; time < 5; time++) {
      const socket = server.connect()
      const failed = vi.fn()
      socket.on('error', failed)
      const token = server.tokens.full
      socket.write(
        `POST /plants HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json\r\ncontent-length: ${bytes}\r\n\r\n`,
      )
      const answer = once(socket, 'data')
      socket.write(Buffer.alloc(2 ** 16, 0x20))
      expect(`${(await answer)[0]}`).toMatch(/^HTTP\/1\.1 413 /)
      // It has not looked at the answer yet.
      for (let sent = 2 ** 16; sent < bytes; sent += 2 ** 16) {
        if (!socket.write(Buffer.alloc(2 ** 16, 0x20)) && !socket.destroyed)
          await Promise.race([once(socket, 'drain'), once(socket, 'close')])
      }
      if (!socket.destroyed) await once(socket.end(), 'close')
      expect(failed).not.toHaveBeenCalled()
    }
  })

  test('that was refused is cut after a second, though the client keeps its end open', async () => {
    await using server = await startWithClient()
    const accepted = nextConnection(server)
    using socket = server.connect({ allowHalfOpen: true })
    const served = await accepted
    const closed = new Promise(resolve => served.once('close', resolve))
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    socket.resume().write('rubbish\r\n\r\n')
    await once(socket, 'end')
    expect(socket.writable).toBe(true)
    vi.advanceTimersByTime(999)
    await nextTurn()
    expect(connectionsOf(server.server.server).size).toBe(2)
    vi.advanceTimersByTime(1)
    await closed
  })

  test.each([
    ['nothing', ''],
    ['a request', 'GET /healthz HTTP/1.1\r\nhost: h\r\n\r\n'],
    [
      'a long body',
      `POST /plants HTTP/1.1\r\nhost: h\r\ncontent-length: 200000\r\n\r\n${' '.repeat(200_000)}`,
    ],
    ['rubbish', 'rubbish\r\n\r\n'],
  ])('beyond the limit on which %s is sent ends with its client', async (_, sent) => {
    await using server = await startWithClient({ limits: { connectionsMax: 1 } })
    const accepted = nextConnection(server)
    // Whoever waits for a time limit waits forever.
    vi.useFakeTimers({ toFake: ['setTimeout'] })
    using socket = server.connect()
    const closed = once(await accepted, 'close')
    socket.write(sent)
    expect(`${(await once(socket, 'data'))[0]}`).toMatch(/^HTTP\/1\.1 503 /)
    await closed
    expect(server.answered.map(({ status }) => status)).toEqual([200, 503])
  })

  test('with a request under way is answered when the server stops, and told that it is not ready any more', async () => {
    const { plants, begun, letGo } = heldInserts()
    await using server = await startWithClient({ plants })
    const { client } = server
    using wire = await client.open()
    wire.send(plantRequest(client, plant))
    await begun
    const closed = server.server.close()
    assertFailure(await client.ask('GET', '/readyz', { token: null }), 50303)
    letGo()
    assertSuccess(await wire.answer(server.client.asked('POST /plants')), { name: 'n' })
    await closed
  })
})

describe('a client that is silent beyond the limit', () => {
  const limits = { inactivityTimeoutMs: 100 }
  const sending: Record<string, (client: ServiceWithClient['client'], token: string) => Uint8Array | string> =
    {
      'a create': client => plantRequest(client, plant),
      'a batch that has not ended': (_, token) =>
        `POST /plants/batch HTTP/1.1\r\nhost: h\r\nauthorization: Bearer ${token}\r\ncontent-type: application/x-ndjson\r\ncontent-length: 1000000\r\n\r\n${`${plant}\n`.repeat(1_000)}`,
    }

  test.each(Object.entries(sending))('is not cut while the store is busy with %s', async (_, send) => {
    const { plants, begun, letGo } = heldInserts()
    await using server = await startWithClient({ plants: createPlants({ insert: plants.insert }), limits })
    using _atTheLatest = { [Symbol.dispose]: letGo }
    const accepted = nextConnection(server)
    using socket = server.connect()
    const served = await accepted
    socket.write(send(server.client, server.tokens.full))
    await begun
    await once(served, 'timeout')
    expect(served.destroyed).toBe(false)
    await once(served, 'timeout')
    expect(served.destroyed).toBe(false)
  })

  test('is not cut while its token is looked up, whether or not it sends its body before', async () => {
    const admitted = Promise.withResolvers<{ name: string }>()
    await using server = await startWithClient({ gate: () => admitted.promise, limits })
    const accepted = nextConnection(server)
    using socket = server.connect()
    const served = await accepted
    socket.write(plantRequest(server.client, plant, ['expect: 100-continue']).subarray(0, -plant.length))
    await once(served, 'timeout')
    expect(served.destroyed).toBe(false)
    admitted.resolve({ name: 'flora' })
    expect(`${(await once(socket, 'data'))[0]}`).toBe('HTTP/1.1 100 Continue\r\n\r\n')
    // Now it is its turn.
    await once(served, 'close')
  })
})

describe('a client that sends requests without waiting for answers', () => {
  /** What the client sends is on its way once the server, asked by somebody else, has gone round so often. */
  const turns = 200

  test('is read no further than a packet or two while the first waits', async () => {
    const { plants, begun, letGo } = heldInserts()
    await using server = await startWithClient({ plants })
    using _atTheLatest = { [Symbol.dispose]: letGo }
    const { client } = server
    const accepted = nextConnection(server)
    using socket = server.connect({ allowHalfOpen: true })
    const served = await accepted
    const request = `GET ${client.target('/plants')} HTTP/1.1\r\nhost: h\r\n\r\n`
    socket.write(plantRequest(client, plant))
    await begun
    const count = 100_000
    socket.write(request.repeat(count))
    const heapBefore = process.memoryUsage().heapUsed
    for (let turn = 0; turn < turns; turn++) await client.ask('GET', '/healthz')
    expect(process.memoryUsage().heapUsed - heapBefore).toBeLessThan(50 * 2 ** 20)
    expect(served.bytesRead).toBeLessThan(256 * 1024)
    letGo()
    let answers = 0
    for await (const text of socket.setEncoding('latin1')) {
      answers += text.split('HTTP/1.1 ').length - 1
      if (answers > count / 10) break
    }
    expect(served.bytesRead).toBeGreaterThan((count / 10) * request.length)
  }, 30_000)

  test('gets every answer, one after the other, also to what was read late', async () => {
    const { plants, begun, letGo } = heldInserts()
    let underWay = 0
    let most = 0
    const page = async () => {
      most = Math.max(most, ++underWay)
      await nextTurn()
      underWay--
      return []
    }
    const limits = { headersTimeoutMs: 200, requestTimeoutMs: 400 }
    await using server = await startWithClient({ plants: { ...plants, page }, limits })
    const { client, tokens } = server
    using wire = await client.open()
    wire.send(plantRequest(client, plant))
    await begun
    const count = 2_000
    wire.send(`GET /plants HTTP/1.1\r\nhost: h\r\nauthorization: Bearer ${tokens.full}\r\n\r\n`.repeat(count))
    await client.ask('GET', '/healthz')
    // What is late for its own fault is told so: whatever was read of the others is older.
    using late = await client.open()
    late.send('GET /healthz HTTP/1.1\r\nhost: ')
    assertFailure(await late.answer(undefined), 40801)
    letGo()
    assertSuccess(await wire.answer(client.asked('POST /plants')), { name: 'n' })
    for (let n = 0; n < count; n++) assertSuccess(await wire.answer(client.asked('GET /plants')), [])
    expect(most).toBe(1)
  }, 30_000)

  test.each([
    [17, 'is closed'],
    [16, 'is not closed'],
  ])('while thousands wait on all connections, one with %i %s', async (count, outcome) => {
    const { plants, letGo } = heldInserts()
    await using server = await startWithClient({ plants })
    using _atTheLatest = { [Symbol.dispose]: letGo }
    const { client } = server
    const waiting = (count: number) => 'GET /healthz HTTP/1.1\r\nhost: h\r\n\r\n'.repeat(count)
    const begin = async (count: number) => {
      const accepted = nextConnection(server)
      const socket = server.connect({ allowHalfOpen: true })
      const served = await accepted
      socket.write(Buffer.concat([plantRequest(client, plant), Buffer.from(waiting(count))]))
      return { socket, served }
    }
    const flooding = await Promise.all(Array.from({ length: 4 }, () => begin(1_249)))
    const all = connectionsOf(server.server.server)
    const waits = () => [...all.values()].reduce((sum, each) => sum + each.waiting.length, 0)
    await expect.poll(waits).toBe(4 * 1_249)
    const last = await begin(count)
    await client.ask('GET', '/healthz')
    expect(last.served.destroyed ? 'is closed' : 'is not closed').toBe(outcome)
    for (const { socket } of [...flooding, last]) socket.destroy()
  })

  test.each([
    ['requests', 'GET /healthz HTTP/1.1\r\nhost: h\r\n\r\n', 2_400, 50],
    ['chunks', '1\r\nx\r\n', 10_900, 30],
  ])('with tiny %s is read at its turn, however many send them at once', async (what, tiny, times, count) => {
    await using server = await startWithClient()
    let inTurn = 0
    let most = 0
    const note = () => {
      if (inTurn++ === 0) setImmediate(() => (inTurn = 0))
      most = Math.max(most, inTurn)
    }
    server.server.server.on('request', request => {
      note()
      request.on('data', note)
    })
    const sockets = Array.from({ length: count }, () => server.connect({ allowHalfOpen: true }))
    await expect.poll(() => connectionsOf(server.server.server).size).toBeGreaterThanOrEqual(count)
    const head =
      what === 'chunks' ? 'POST /plants HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n' : ''
    for (const socket of sockets) socket.write(head + tiny.repeat(times))
    await Promise.all(sockets.map(socket => once(socket, 'data')))
    expect(most).toBeGreaterThan(times / 2)
    expect(most).toBeLessThan(4 * times)
    for (const socket of sockets) socket.destroy()
  })

  test('and was refused is read no further than a packet or two', async () => {
    await using server = await startWithClient({ limits: { connectionsMax: 1 } })
    const accepted = nextConnection(server)
    using socket = server.connect({ allowHalfOpen: true })
    const served = await accepted
    socket.resume().write('GET /healthz HTTP/1.1\r\nhost: h\r\n\r\n'.repeat(100_000))
    await new Promise(resolve => served.once('close', resolve))
    expect(served.bytesRead).toBeLessThan(256 * 1024)
  })
})

const nextConnection = ({ server }: ServiceWithClient) =>
  new Promise<Socket>(resolve => server.server.once('connection', resolve))

const connections = ({ server }: ServiceWithClient) =>
  new Promise<number>((resolve, reject) => {
    server.server.getConnections((error, count) => (error ? reject(error) : resolve(count)))
  })

const refusedBy = ({ server }: ServiceWithClient) => once(server.server, 'clientError')

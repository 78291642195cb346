import dns from 'node:dns'
import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import {
  assertFailure,
  assertSuccess,
  createClient,
  createRecorder,
  plantRequest,
  toJson,
} from '@plant-store/contract'
import { DomainError, type PlantRepository } from '@plant-store/domain'
import { createMemoryPlantRepository } from '@plant-store/domain/testing'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { connectionsOf } from '../src/connection/node-server.ts'
import { type MemoryServiceOptions, startMemoryService } from './memory-service.ts'

afterEach(() => void vi.useRealTimers())

async function start(options: MemoryServiceOptions = {}) {
  const service = await startMemoryService(options)
  const client = createClient(service, createRecorder(await service.description()))
  const asked = (method: string, path: string) => ({ method, target: client.target(path) })
  return {
    service,
    client,
    asked,
    async [Symbol.asyncDispose]() {
      client.close()
      await service[Symbol.asyncDispose]()
    },
  }
}

/** A repository whose inserts wait until they are let go. */
function held() {
  const memory = createMemoryPlantRepository()
  const letGo = Promise.withResolvers<void>()
  const begun = Promise.withResolvers<void>()
  const plants: PlantRepository = {
    ...memory,
    async insert(plant) {
      begun.resolve()
      await letGo.promise
      return memory.insert(plant)
    },
  }
  return { plants, begun: begun.promise, letGo: letGo.resolve }
}

test('a server starts with any two time limits, also with one that Node holds against the other', async () => {
  await using server = await start({ limits: { headersTimeoutMs: 400_000, requestTimeoutMs: 600 } })
  using wire = await server.client.open()
  wire.send('GET /healthz HTTP/1.1\r\nhost: ')
  assertFailure(await wire.answer(undefined), 40801)
})

test('an id of any length in a path is judged as one', async () => {
  await using server = await start()
  assertFailure(await server.client.askBare(`GET /plants/${'9'.repeat(1_000)}`), 40004, 'id')
})

test('connections beyond twice the limit are closed at once', async () => {
  await using server = await start({ limits: { connectionsMax: 3 } })
  const { service } = server
  const all = connectionsOf(service.server.server)
  const dropped = new Promise(resolve => service.server.server.once('drop', () => resolve(all.size)))
  const sockets = Array.from({ length: 12 }, () => connectTo(service))
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
    await using server = await start({ host: 'localhost' })
    expect(server.service.server.addresses().map(each => (each as AddressInfo).address)).toEqual([
      '127.0.0.1',
    ])
    const fields = ['host: h', 'expect: a miracle']
    const request = `GET /healthz HTTP/1.1\r\n${fields.join('\r\n')}\r\n\r\n`
    assertFailure(await server.client.exchange(server.asked('GET', '/healthz'), request), 41701)
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
    await using server = await start({ plants, check: unavailable })
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
    expect(server.service.logged).toEqual([])
    const reasons = answers.map(([{ headers }]) => ({
      reqId: headers.get('x-request-id'),
      err: expect.any(DomainError),
    }))
    expect(server.service.debugged).toEqual(reasons)
  })

  test('is told as 500 when it is a defect, with the reason in the log only', async () => {
    const plants = { insert: broken, save: broken, remove: broken, find: broken, page: broken }
    await using server = await start({ plants, check: broken })
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
    expect(server.service.logged.map(([level]) => level)).toEqual(answers.map(() => 'error'))
    expect(server.service.logged.every(([, message]) => message.includes('/secret/path'))).toBe(true)
  })
})

describe('a connection', () => {
  test('on which rubbish follows a request is answered for the request first, however long that takes', async () => {
    const { plants, begun, letGo } = held()
    await using server = await start({ plants })
    using wire = await server.client.open()
    wire.send(plantRequest(server.client, plant))
    await begun
    // Every packet is one more error to Node's parser.
    for (const rubbish of ['rubbish', 'more rubbish']) {
      const refused = refusedBy(server.service)
      wire.send(`${rubbish}\r\n\r\n`)
      await refused
    }
    letGo()
    assertSuccess(await wire.answer(server.asked('POST', '/plants')), { name: 'n' })
    assertFailure(await wire.answer(undefined), 40000)
    expect(`${await wire.closed()}`).toBe('')
    const statuses = () => server.service.answered.map(({ status }) => status).sort()
    await expect.poll(statuses).toEqual([200, 200, 400])
  })

  test('that is cut in the middle of a body is no defect of the server', async () => {
    await using server = await start()
    const { service, client } = server
    const others = await connections(service)
    const wire = await client.open()
    wire.send(plantRequest(client, plant, ['expect: 100-continue']).subarray(0, -3))
    expect(await wire.interim()).toBe(100)
    wire[Symbol.dispose]()
    await expect.poll(() => connections(service)).toBe(others)
    await nextTurn()
    expect(service.logged).toEqual([])
  })

  test('that is reset between two requests leaves nothing in the log', async () => {
    await using server = await start()
    const { service } = server
    const accepted = nextConnection(service)
    using socket = connectTo(service)
    const served = await accepted
    socket.write('GET /healthz HTTP/1.1\r\nhost: h\r\n\r\n')
    await once(socket, 'data')
    await expect.poll(() => service.answered).toHaveLength(2)
    socket.resetAndDestroy()
    await new Promise(resolve => served.once('close', resolve))
    expect(service.answered).toHaveLength(2)
    expect(service.logged).toEqual([])
  })

  test('that is reset in the middle of a body is logged as what it is', async () => {
    await using server = await start()
    const { service } = server
    using socket = connectTo(service)
    const fields = [`authorization: Bearer ${service.tokens.full}`, 'content-type: application/json']
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
    await expect.poll(() => service.answered.at(-1)).toMatchObject({ status: 400, error: 40000 })
    expect(service.logged).toEqual([])
  })

  test('whose body is too large gives the answer to a client that is still sending', async () => {
    await using server = await start()
    const { hostname, port } = new URL(server.service.url)
    const bytes = 4 * 2 ** 20
    for (let time = 0; time < 5; time++) {
      const socket = connect(Number(port), hostname)
      const failed = vi.fn()
      socket.on('error', failed)
      const token = server.service.tokens.full
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

  test.each([['was refused', rubbish]])(
    'that %s is cut after a second, though the client keeps its end open',
    async (_, sent) => {
      await using server = await start()
      const [ended, closed] = await watchedEnd(server.service, sent)
      expect(ended.writable).toBe(true)
      vi.advanceTimersByTime(999)
      await nextTurn()
      expect(connectionsOf(server.service.server.server).size).toBe(2)
      vi.advanceTimersByTime(1)
      await closed
      ended.destroy()
    },
  )

  test('with a request under way is answered when the server stops, and told that it is not ready any more', async () => {
    const { plants, begun, letGo } = held()
    await using server = await start({ plants })
    const { service, client } = server
    using wire = await client.open()
    wire.send(plantRequest(client, plant))
    await begun
    const closed = service.server.close()
    assertFailure(await client.ask('GET', '/readyz', { token: null }), 50303)
    letGo()
    assertSuccess(await wire.answer(server.asked('POST', '/plants')), { name: 'n' })
    await closed
  })
})

describe('a client that sends requests without waiting for answers', () => {
  /** What the client sends is on its way once the server, asked by somebody else, has gone round so often. */
  const turns = 200

  test('is read no further than a packet or two while the first waits', async () => {
    const { plants, begun, letGo } = held()
    await using server = await start({ plants })
    using _atTheLatest = { [Symbol.dispose]: letGo }
    const { service, client } = server
    const accepted = nextConnection(service)
    using socket = connectTo(service)
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

  test('gets every answer, also to what was read late because those before it took long', async () => {
    const { plants, begun, letGo } = held()
    await using server = await start({ plants, limits: { headersTimeoutMs: 200, requestTimeoutMs: 400 } })
    const { client } = server
    using wire = await client.open()
    wire.send(plantRequest(client, plant))
    await begun
    const count = 2_000
    wire.send(
      `GET ${client.target('/healthz')} HTTP/1.1\r\nhost: h\r\nx: ${'y'.repeat(80)}\r\n\r\n`.repeat(count),
    )
    await client.ask('GET', '/healthz')
    // What is late for its own fault is told so: whatever was read of the others is older.
    using late = await client.open()
    late.send('GET /healthz HTTP/1.1\r\nhost: ')
    assertFailure(await late.answer(undefined), 40801)
    letGo()
    assertSuccess(await wire.answer(server.asked('POST', '/plants')), { name: 'n' })
    for (let n = 0; n < count; n++) {
      assertSuccess(await wire.answer(server.asked('GET', '/healthz')), { status: 'ok' })
    }
  }, 30_000)

  test.each([
    [17, 'is closed'],
    [16, 'is not closed'],
  ])('while thousands wait on all connections, one with %i %s', async (count, outcome) => {
    const { plants, letGo } = held()
    await using server = await start({ plants })
    using _atTheLatest = { [Symbol.dispose]: letGo }
    const { service, client } = server
    const waiting = (count: number) => 'GET /healthz HTTP/1.1\r\nhost: h\r\n\r\n'.repeat(count)
    const begin = async (count: number) => {
      const accepted = nextConnection(service)
      const socket = connectTo(service)
      const served = await accepted
      socket.write(Buffer.concat([plantRequest(client, plant), Buffer.from(waiting(count))]))
      return { socket, served }
    }
    const flooding = await Promise.all(Array.from({ length: 4 }, () => begin(1_249)))
    const all = connectionsOf(service.server.server)
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
    await using server = await start()
    const { service } = server
    let inTurn = 0
    let most = 0
    const note = () => {
      if (inTurn++ === 0) setImmediate(() => (inTurn = 0))
      most = Math.max(most, inTurn)
    }
    service.server.server.on('request', request => {
      note()
      request.on('data', note)
    })
    const sockets = Array.from({ length: count }, () => connectTo(service))
    await expect.poll(() => connectionsOf(service.server.server).size).toBeGreaterThanOrEqual(count)
    const head =
      what === 'chunks' ? 'POST /plants HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n' : ''
    for (const socket of sockets) socket.write(head + tiny.repeat(times))
    await Promise.all(sockets.map(socket => once(socket, 'data')))
    expect(most).toBeGreaterThan(times / 2)
    expect(most).toBeLessThan(4 * times)
    for (const socket of sockets) socket.destroy()
  })

  test('and was refused is not listened to any more', async () => {
    await using server = await start({ limits: { connectionsMax: 1 } })
    const { service } = server
    let requests = 0
    service.server.server.on('request', () => requests++)
    const accepted = nextConnection(service)
    using socket = connectTo(service)
    const served = await accepted
    const flood = 'GET /healthz HTTP/1.1\r\nhost: h\r\n\r\n'.repeat(100_000)
    socket.resume()
    socket.write(flood)
    await new Promise(resolve => served.once('close', resolve))
    expect(requests).toBe(0)
  })
})

const rubbish = 'rubbish\r\n\r\n'

/** Returns a client's socket that the server has ended, and when the server's is closed. The time stands still. */
async function watchedEnd(service: Service, sent: string) {
  const accepted = nextConnection(service)
  const socket = connectTo(service)
  const closed = accepted.then(served => new Promise(resolve => served.once('close', resolve)))
  await accepted
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  socket.write(sent)
  socket.resume()
  await once(socket, 'end')
  return [socket, closed] as const
}

const nextConnection = ({ server }: Service) =>
  new Promise<Socket>(resolve => server.server.once('connection', resolve))

function connectTo({ url }: Service): Socket & Disposable {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true }).on('error', () => {})
  return Object.assign(socket, { [Symbol.dispose]: () => void socket.destroy() })
}

type Service = Awaited<ReturnType<typeof startMemoryService>>

const connections = ({ server }: Service) =>
  new Promise<number>((resolve, reject) => {
    server.server.getConnections((error, count) => (error ? reject(error) : resolve(count)))
  })

const refusedBy = ({ server }: Service) => once(server.server, 'clientError')

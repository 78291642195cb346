import dns from 'node:dns'
import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
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
import { describe, expect, test, vi } from 'vitest'
import { type MemoryServiceOptions, startMemoryService } from './memory-service.ts'

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
      expect(answer.headers.get('retry-after')).toMatch(/^[1-9]\d*$/)
      expect(`${answer.body}`).not.toContain('fire')
    }
    assertSuccess(await client.ask('GET', '/healthz', { token: null }), { status: 'ok' })
    // As often as clients ask: the line of the request is all.
    expect(server.service.logged).toEqual([])
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
    wire.send('rubbish\r\n\r\n')
    // Every packet is one more error to Node's parser.
    await refusedBy(server.service)
    wire.send('more rubbish\r\n\r\n')
    letGo()
    assertSuccess(await wire.answer(server.asked('POST', '/plants')), { name: 'n' })
    assertFailure(await wire.answer(undefined), 40000)
    expect(`${await wire.closed()}`).toBe('')
  })

  test('that is cut in the middle of a body is no defect of the server', async () => {
    await using server = await start()
    const { service, client } = server
    const others = await connections(service)
    const wire = await client.open()
    wire.send(plantRequest(client, plant, ['expect: 100-continue']).subarray(0, -3))
    expect(await wire.interim()).toBe(100)
    wire[Symbol.dispose]()
    await vi.waitFor(async () => expect(await connections(service)).toBe(others), { timeout: 10_000 })
    await nextTurn()
    expect(service.logged).toEqual([])
  })

  test('that was refused is cut, though the client keeps its end open', async () => {
    await using server = await start()
    const others = await connections(server.service)
    const { hostname, port } = new URL(server.service.url)
    const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true })
    socket.write('rubbish\r\n\r\n')
    socket.resume()
    await once(socket, 'end')
    expect(socket.writable).toBe(true)
    await vi.waitFor(async () => expect(await connections(server.service)).toBe(others), { timeout: 10_000 })
    socket.destroy()
  })

  test('with a request under way is answered when the server stops, and told that it is not ready any more', async () => {
    const { plants, begun, letGo } = held()
    await using server = await start({ plants })
    const { service, client } = server
    using wire = await client.open()
    wire.send(plantRequest(client, plant))
    await begun
    const closed = service.server.close()
    while (service.server.server.listening) await nextTurn()
    wire.send('GET /readyz HTTP/1.1\r\nhost: h\r\n\r\n')
    await nextTurn()
    letGo()
    assertSuccess(await wire.answer(server.asked('POST', '/plants')), { name: 'n' })
    assertFailure(await wire.answer(server.asked('GET', '/readyz')), 50303)
    wire[Symbol.dispose]()
    await closed
  })
})

type Service = Awaited<ReturnType<typeof startMemoryService>>

const connections = ({ server }: Service) =>
  new Promise<number>((resolve, reject) => {
    server.server.getConnections((error, count) => (error ? reject(error) : resolve(count)))
  })

const refusedBy = ({ server }: Service) => once(server.server, 'clientError')

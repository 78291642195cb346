import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { assertSuccess, createClient, createRecorder, plantRequest } from '@plant-store/contract'
import type { PlantRepository, PlantVersion } from '@plant-store/domain'
import { longPlant } from '@plant-store/domain/testing'
import { drain, stopListening } from '@plant-store/http/server'
import fc from 'fast-check'
import { afterEach, expect, test, vi } from 'vitest'
import { connectionsOf } from '../src/connection/node-server.ts'
import { startMemoryService } from './memory-service.ts'

const connectionsMax = 4
/** For what takes no time but on a busy machine. */
const patienceMs = 10_000

/** The server's watch over idle connections; no answer waits for it. */
const idleStepMs = 600

interface Connection {
  readonly client: Socket
  /** The server's end. */
  readonly served: Socket
  readonly sent: number[]
  readonly answered: number[]
  /** Whether an answer said that it is the last. */
  isLast: boolean
  hasLeft: boolean
  /** Whether a request has crossed the last answer on the way: nobody answers it. */
  isTooLate: boolean
  lastResponse: ServerResponse | undefined
}

const step = fc.oneof(
  { weight: 10, arbitrary: fc.record({ send: fc.nat(connectionsMax - 1) }) },
  { weight: 10, arbitrary: fc.constant('work' as const) },
  { weight: 1, arbitrary: fc.record({ leave: fc.nat(connectionsMax - 1) }) },
  { weight: 2, arbitrary: fc.constant('time passes' as const) },
  { weight: 1, arbitrary: fc.constantFrom('stop listening', 'drain') },
)

afterEach(() => void vi.useRealTimers())

const request = 'GET /healthz HTTP/1.1\r\nhost: h\r\n\r\n'
const asked = { method: 'GET', target: '/healthz' }

async function start(plants: Partial<PlantRepository> = {}) {
  const service = await startMemoryService({ plants })
  const client = createClient(service, createRecorder(await service.description()))
  const { server } = service.server
  const { open } = connectionsOf(server)
  return {
    client,
    open,
    server,
    /** Resolves once the server has stopped listening, to the promise of `drain`. */
    async drain(timeoutMs: number) {
      const drained = drain(server, timeoutMs)
      await until('the server has stopped listening', () => !server.listening)
      await nextTurn()
      return { drained }
    },
    async [Symbol.asyncDispose]() {
      vi.useRealTimers()
      client.close()
      await service[Symbol.asyncDispose]()
    },
  }
}

/** A repository whose inserts wait until they are let go. */
function held() {
  const [begun, letGo] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const insert = async () => {
    begun.resolve()
    await letGo.promise
    return 'inserted' as const
  }
  return { insert, begun: begun.promise, letGo: letGo.resolve }
}

test('a connection without a request stays open for half a second, for a request on its way', async () => {
  const { insert, begun, letGo } = held()
  await using server = await start({ insert })
  const { client, open } = server
  using busy = await client.open()
  busy.send(plantRequest(client, '{"id":1,"name":"n"}'))
  await begun
  using silent = await client.open()
  using idle = await client.open()
  using late = await client.open()
  for (const wire of [idle, late]) {
    wire.send(request)
    assertSuccess(await wire.answer(asked), { status: 'ok' })
  }
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
  const { drained } = await server.drain(2 ** 31 - 1)
  letGo()
  const answer = await busy.answer({ method: 'POST', target: '/plants' })
  expect(answer.headers.get('connection')).toBe('close')
  vi.advanceTimersByTime(450)
  const kept = [...open.keys()].filter(({ destroyed }) => !destroyed)
  expect(kept.length).toBeGreaterThanOrEqual(3)
  late.send(request)
  expect((await late.answer(asked)).headers.get('connection')).toBe('close')
  vi.advanceTimersByTime(100)
  for (const wire of [silent, idle]) expect(await wire.closed()).toHaveLength(0)
  expect(await drained).toBe(0)
  expect(vi.getTimerCount()).toBe(0)
})

test('connections that the system has accepted are served, however many', async () => {
  await using service = await startMemoryService()
  const { server } = service.server
  let accepted = 0
  server.on('connection', () => accepted++)
  const listeners = server.listenerCount('connection')
  const { port } = server.address() as AddressInfo
  const clients = Array.from({ length: 20 }, () => connect({ port, host: '127.0.0.1' }))
  await stopListening(server)
  expect(accepted).toBe(clients.length)
  expect(server.listenerCount('connection')).toBe(listeners)
  for (const client of clients) client.destroy()
})

test('a request that arrives between both steps of a stop waits, and its answer is the last', async () => {
  await using server = await start()
  const { client, open } = server
  using wire = await client.open()
  wire.send(request)
  assertSuccess(await wire.answer(asked), { status: 'ok' })
  await stopListening(server.server)
  const arrived = once(server.server, 'request')
  wire.send(request)
  const [, response] = await arrived
  for (let turn = 0; turn < 20; turn++) await nextTurn()
  expect(response.headersSent).toBe(false)
  const drained = drain(server.server, patienceMs)
  const answer = await wire.answer(asked)
  assertSuccess(answer, { status: 'ok' })
  expect(answer.headers.get('connection')).toBe('close')
  wire[Symbol.dispose]()
  expect([await drained, open.size]).toEqual([0, 0])
  expect(await drain(server.server, patienceMs)).toBe(0)
})

test('connections that never end coming delay the stop by half a second at most', async () => {
  await using service = await startMemoryService()
  const { server } = service.server
  const { port } = server.address() as AddressInfo
  const clients: Socket[] = []
  const knock = () => void clients.push(connect({ port, host: '127.0.0.1' }).on('error', () => {}))
  const pass = async (turns: number) => {
    for (let turn = 0; turn < turns; turn++) await nextTurn()
  }
  vi.useFakeTimers({ toFake: ['performance'] })
  server.on('connection', knock)
  for (let n = 0; n < 5; n++) knock()
  const stopped = stopListening(server)
  await pass(20)
  vi.advanceTimersByTime(499)
  await pass(20)
  expect(server.listening).toBe(true)
  vi.advanceTimersByTime(1)
  await pass(2)
  expect(server.listening).toBe(false)
  await stopped
  expect(clients.length).toBeGreaterThan(20)
  for (const client of clients) client.destroy()
})

test('a client that reads slowly gets its whole answer', async () => {
  const bytes = 8 * 2 ** 20
  const find = async () => ({ plant: longPlant(1n, bytes), version: '1' as PlantVersion })
  await using server = await start({ find })
  const { client } = server
  const { hostname, port } = new URL(client.store.url)
  const socket = connect({ host: hostname, port: Number(port) })
  socket.write(
    `GET /plants/1 HTTP/1.1\r\nhost: h\r\nauthorization: Bearer ${client.store.tokens.full}\r\n\r\n`,
  )
  await once(socket, 'readable')
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
  const { drained } = await server.drain(2 ** 31 - 1)
  vi.advanceTimersByTime(idleStepMs)
  const pieces: Buffer[] = await socket.toArray()
  expect(Buffer.concat(pieces).length).toBeGreaterThan(bytes)
  vi.advanceTimersByTime(idleStepMs)
  expect(await drained).toBe(0)
})

test('after its time it cuts the rest, and counts the requests that had arrived whole', async () => {
  const { insert, begun, letGo } = held()
  await using server = await start({ insert })
  const { client, open } = server
  const post = plantRequest(client, '{"id":1,"name":"n"}')
  using idle = await client.open()
  idle.send(request)
  assertSuccess(await idle.answer(asked), { status: 'ok' })
  const { hostname, port } = new URL(client.store.url)
  const gone = connect({ host: hostname, port: Number(port) })
  await once(gone, 'connect')
  const left = [...open.keys()].at(-1) as Socket
  gone.write(post)
  using whole = await client.open()
  whole.send(post)
  using silent = await client.open()
  using half = await client.open()
  half.send(post.subarray(0, -1))
  await begun
  const arrived = () => [...open.values()].filter(({ lastResponse }) => lastResponse !== undefined)
  await expect.poll(() => arrived().length).toBeGreaterThanOrEqual(4)
  const { drained } = await server.drain(300)
  gone.resetAndDestroy()
  await new Promise(resolve => left.once('close', resolve))
  expect(await drained).toBe(1)
  for (const wire of [idle, whole, half, silent]) expect(await wire.closed()).toHaveLength(0)
  letGo()
})

test('a server that stops answers each request that arrived, once and in order, and then closes', async () => {
  const property = fc.asyncProperty(
    fc.scheduler(),
    fc.array(step, { maxLength: 40, size: 'max' }),
    async (scheduler, steps) => {
      const broken: string[] = []
      const work = () => scheduler.schedule(Promise.resolve())
      const { server } = await startMemoryService({
        gate: async () => {
          await work()
          return { name: 'somebody' }
        },
        plants: {
          insert: async () => {
            await work()
            return 'inserted'
          },
        },
      })
      vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
      const { port } = server.server.address() as AddressInfo
      const connections: (Connection | undefined)[] = Array(connectionsMax).fill(undefined)
      const open = () => connections.filter(each => each !== undefined)
      let arrived = 0
      server.server.on('request', ({ socket }, response) => {
        arrived++
        const connection = open().find(({ served }) => served === socket) as Connection
        const { lastResponse } = connection
        // As the client could not know yet that this is the last answer.
        if (lastResponse?.headersSent && !lastResponse.shouldKeepAlive) connection.isTooLate = true
        connection.lastResponse = response
      })

      /** Until each client has read what the server wrote to it. */
      const settle = () =>
        until('clients have read what the server wrote', () =>
          open().every(({ client, served, hasLeft }) => hasLeft || client.bytesRead === served.bytesWritten),
        )
      const connectTo = async (): Promise<Connection> => {
        const accepted = once(server.server, 'connection') as Promise<[Socket]>
        const client = connect({ port, host: '127.0.0.1' })
        const [[served]] = await Promise.all([accepted, once(client, 'connect')])
        const connection: Connection = {
          client,
          served,
          sent: [],
          answered: [],
          isLast: false,
          hasLeft: false,
          isTooLate: false,
          lastResponse: undefined,
        }
        client.on('error', () => {})
        client.setEncoding('latin1').on('data', text => note(connection, `${text}`))
        return connection
      }
      const note = (connection: Connection, text: string) => {
        for (const [answer, name] of text.matchAll(/HTTP\/1\.1 200 OK\r\n.*?\{"name":"(\d+)"\}/gs)) {
          if (connection.isLast) broken.push(`${name} is answered after the last answer`)
          connection.answered.push(Number(name))
          connection.isLast = /^connection: close\r$/im.test(answer)
        }
      }
      let count = 0
      const send = async (at: number) => {
        if (connections[at] === undefined) {
          if (stops !== undefined || drained !== undefined) return
          connections[at] = await connectTo()
        }
        const connection = connections[at] as Connection
        if (connection.isLast || connection.hasLeft || connection.isTooLate || connection.served.destroyed)
          return
        const before = arrived
        const name = count++
        connection.sent.push(name)
        const body = `{"id":${name},"name":"${name}"}`
        connection.client.write(
          `POST /plants HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
        )
        await until('the request has arrived', () => arrived > before || connection.served.destroyed)
        if (connection.isTooLate || arrived === before) connection.sent.pop()
      }

      let stops: Promise<void> | undefined
      let drained: Promise<number> | undefined
      let unanswered: number | undefined
      const startDrain = () => {
        drained ??= (async () => {
          await stops
          unanswered = await drain(server.server, 2 ** 31 - 1)
          for (const { served } of open()) if (!served.destroyed) broken.push('a connection is open')
          return unanswered
        })()
      }
      for (const each of steps) {
        if (each === 'work') {
          if (scheduler.count() > 0) await scheduler.waitOne()
        } else if (each === 'time passes') vi.advanceTimersByTime(idleStepMs)
        else if (each === 'stop listening') {
          if (drained === undefined) stops ??= stopListening(server.server)
        } else if (each === 'drain') startDrain()
        else if ('send' in each) await send(each.send)
        else {
          const connection = connections[each.leave]
          connection?.client.destroy()
          if (connection) connection.hasLeft = true
        }
        await settle()
      }

      startDrain()
      await until('the server is drained', async () => {
        if (scheduler.count() > 0) await scheduler.waitOne()
        vi.advanceTimersByTime(idleStepMs)
        return unanswered !== undefined
      })
      await until('connections are closed', () => open().every(({ client }) => client.closed))
      for (const { sent, answered, hasLeft } of open()) if (!hasLeft) expect(answered).toEqual(sent)
      expect({ unanswered, broken }).toEqual({ unanswered: 0, broken: [] })
      vi.useRealTimers()
      for (const { client } of open()) client.destroy()
      await server.close()
    },
  )
  await fc.assert(property, { numRuns: 150 })
}, 60_000)

async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  const giveUpAt = Date.now() + patienceMs
  while (!(await isSo())) {
    if (Date.now() > giveUpAt) throw new Error(`it is not so that ${what}`)
    await nextTurn()
  }
}

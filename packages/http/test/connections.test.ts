import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { DomainError, type PlantRepository } from '@plant-store/domain'
import { longPlant } from '@plant-store/domain/testing'
import {
  assertFailure,
  assertSuccess,
  bareRequest,
  hostAndToken,
  jsonOf,
  plantRequest,
  toJson,
} from '@plant-store/http/testing'
import { describe, expect, test, vi } from 'vitest'
import { connectionsOf } from '../src/wire/node-server.ts'
import {
  getRequest,
  pausedInserts,
  type Service,
  startService,
  versioned,
} from './memory-service.ts'

const plant = toJson({ id: 1n, name: 'n' })
const health = 'GET /healthz HTTP/1.1\r\nhost: h\r\n\r\n'
/** Lengthens a request, so that few of them are more than a packet. */
const inEightKilobytes = (request: string) =>
  request.replace('host', `x: ${'y'.repeat(8_000)}\r\nhost`)
const longHealth = inEightKilobytes(health)
const longBodyHead = 'POST /plants HTTP/1.1\r\nhost: h\r\ncontent-length: 200000\r\n\r\n'
const post = { method: 'POST', target: '/plants' }

test.each<[error: Error, number: number, logged: unknown[], debugged: unknown[]]>([
  // Clients could fill a log with these, so they are lines at the level debug.
  [
    new DomainError('store-unavailable', 'the store could not be read'),
    50302,
    [],
    [{ reqId: expect.any(String), err: expect.any(DomainError) }],
  ],
  [
    new TypeError('undefined at /secret/path'),
    50001,
    [['error', expect.stringContaining('/secret/path')]],
    [],
  ],
])('operations that meet "%s" get %i', async (...row) => {
  const [error, number, logged, debugged] = row
  const fail = async () => {
    throw error
  }
  const plants = { insert: fail, save: fail, remove: fail, find: fail, page: fail }
  await using service = await startService({ plants, check: fail })
  const { ask } = service.client

  const answers = await Promise.all([
    ask('POST', '/plants', { body: plant }),
    ask('PUT', '/plants/1', { body: plant }),
    ask('DELETE', '/plants/1'),
    ask('GET', '/plants/1'),
    ask('GET', '/plants'),
    ask('GET', '/readyz', { token: null }),
  ])

  const message = expect.not.stringMatching(/undefined|secret/)
  const failure = [Math.floor(number / 100), { error: BigInt(number), message }]
  const failures = answers.map(answer => [answer.status, jsonOf(answer)])
  expect(failures).toEqual(answers.map(() => failure))
  expect(service.logged).toEqual(answers.flatMap(() => logged))
  expect(service.debugged).toEqual(answers.flatMap(() => debugged))
})

/** Starts a service with a connection whose create waits for the store. */
async function startBusy(plants: Partial<PlantRepository> = {}, limits = {}) {
  const inserts = pausedInserts()
  const service = await startService({ plants: { ...inserts.plants, ...plants }, limits })
  const wire = await service.client.open()
  wire.send(plantRequest(service.client, plant))
  await inserts.begun
  const [served] = service.sockets
  assert(served !== undefined, 'the server accepts the connection')
  return {
    service,
    wire,
    served,
    resume: inserts.resume,
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  }
}

type Busy = Awaited<ReturnType<typeof startBusy>>

describe('a connection with a slow request', () => {
  test.each([
    {
      why: 'sends rubbish',
      // Every packet is one more error to Node's parser.
      send: async ({ service, wire }: Busy) => {
        for (const rubbish of ['rubbish', 'more rubbish']) {
          const refused = once(service.app.server, 'clientError')
          wire.send(`${rubbish}\r\n\r\n`)
          await refused
        }
      },
      error: 40000,
    },
    {
      why: 'is late with the next, of which the rest is ignored',
      send: async ({ service, wire }: Busy) => {
        wire.send('POST /plants HTTP/1.1\r\nhost: h\r\n')
        timeOut(service)
        wire.send('content-length: 2\r\n\r\n{}')
        await service.client.ask('GET', '/healthz')
      },
      error: 40801,
    },
    {
      why: 'is late with the body of the next',
      send: async ({ service, wire }: Busy) => {
        wire.send(plantRequest(service.client, plant).subarray(0, -1))
        await once(service.app.server, 'clientError')
      },
      error: 40801,
    },
  ])('that $why gets both answers in order', async ({ send, error }) => {
    await using busy = await startBusy({}, { requestTimeoutMs: 100 })
    const { service, wire } = busy

    await send(busy)
    busy.resume()
    const created = await wire.answer(post)
    const refusal = await wire.answer(undefined)
    const bytesAfterwards = await wire.closed()

    assertSuccess(created, { name: 'n' })
    assertFailure(refusal, error)
    expect(`${bytesAfterwards}`).toBe('')
    await expect
      .poll(() => service.answered.map(line => line.error))
      .toEqual(expect.arrayContaining([undefined, error]))
  })
})

describe('a connection', () => {
  test('that is reset in the middle of a body is no defect of the server', async () => {
    await using service = await startService()
    const both = await service.connect()
    const closed = new Promise(resolve => both.served.once('close', resolve))
    const request = plantRequest(service.client, plant, ['expect: 100-continue'])
    both.socket.write(request.subarray(0, -3))
    await once(both.socket, 'data')

    both.socket.resetAndDestroy()
    await closed

    await expect.poll(() => service.answered).toMatchObject([{ error: 40000 }])
    expect(service.logged).toEqual([])
  })

  test('with a body that is too large gets the answer while it still sends', async () => {
    await using service = await startService()
    const bodyBytes = 4 * 2 ** 20
    const [head] = `${plantRequest(service.client, plant)}`.split('content-length')

    const socket = service.open()
    const onError = vi.fn()
    socket.on('error', onError)
    socket.write(`${head}content-length: ${bodyBytes}\r\n\r\n `)
    const [answer] = await once(socket, 'data')

    // The client sends the rest of its body before it looks at the answer.
    socket.end(Buffer.alloc(bodyBytes - 1))
    await once(socket, 'close')

    expect(`${answer}`).toMatch(/^HTTP\/1\.1 413 /)
    expect(onError).not.toHaveBeenCalled()
  })

  test('that was refused is cut after a second if the client keeps it open', async () => {
    await using service = await startService()
    const both = await service.connect()
    const closed = new Promise(resolve => both.served.once('close', resolve))
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })

    both.socket.resume().write('rubbish\r\n\r\n')
    await once(both.socket, 'end')
    expect(both.socket.writable, "the client's end is open").toBe(true)

    vi.advanceTimersByTime(999)
    await nextTurn()
    expect(connectionsOf(service.app.server).size, 'after 999 ms').toBe(1)

    vi.advanceTimersByTime(1)
    await closed
  })

  test.each(
    Object.entries({
      nothing: '',
      'a long body': `${longBodyHead}${' '.repeat(200_000)}`,
      rubbish: 'rubbish\r\n\r\n',
    }),
  )('beyond the limit that sends %s is refused and closed', async (_, bytes) => {
    await using service = await startService({ limits: { connectionsMax: 1 } })
    using wire = await service.client.open()
    const accepted = once(service.app.server, 'connection')
    // A test that relies on a time limit waits forever.
    vi.useFakeTimers({ toFake: ['setTimeout'] })

    const socket = service.open()
    const [served] = await accepted
    const closed = once(served, 'close')
    socket.write(bytes)
    const [refusal] = await once(socket, 'data')
    await closed
    wire.send(health)
    const answer = await wire.answer({ method: 'GET', target: '/healthz' })

    expect(`${refusal}`).toMatch(/^HTTP\/1\.1 503 .*retry-after: 1\r\n.*"error":50304/s)
    assertSuccess(answer, { status: 'ok' })
    expect(service.answered).toMatchObject([{ error: 50304 }, {}])
  })

  test('beyond twice the limit is closed at once', async () => {
    await using service = await startService({ limits: { connectionsMax: 3 } })
    const { server } = service.app
    const connections = connectionsOf(server)
    const countAtDrop = new Promise(resolve =>
      server.once('drop', () => resolve(connections.size)),
    )

    openMany(service, 12)

    expect(await countAtDrop).toBe(6)
  })
})

describe('a client that is silent beyond the limit', () => {
  test.each(['POST /plants', 'POST /plants/batch'])(
    'is not cut while the store is busy with %s',
    async request => {
      using inserts = pausedInserts()
      await using service = await startService({ plants: inserts.plants })
      const { client } = service
      const both = await service.connect()
      const isBatch = request.endsWith('batch')
      const mediaType = isBatch ? 'application/x-ndjson' : 'application/json'
      // The batch goes on.
      const lines = isBatch ? `${plant}\n`.repeat(1_000) : plant
      const length = isBatch ? 1_000_000 : plant.length
      const head = bareRequest(client.asked(request), [
        ...hostAndToken(client),
        `content-type: ${mediaType}`,
        `content-length: ${length}`,
      ])
      both.socket.write(head + lines)
      await inserts.begun

      service.app.server.emit('timeout', both.served)

      expect(both.served.destroyed).toBe(false)
    },
  )

  test('is not cut while its token is looked up', async () => {
    const asked = Promise.withResolvers<void>()
    const admitted = Promise.withResolvers<{ name: string }>()
    const gate = () => {
      asked.resolve()
      return admitted.promise
    }
    await using service = await startService({ gate })
    const { socket, served } = await service.connect()
    const request = plantRequest(service.client, plant, ['expect: 100-continue'])
    socket.write(request.subarray(0, -plant.length))
    await asked.promise

    service.app.server.emit('timeout', served)
    expect(served.destroyed, 'while its token is looked up').toBe(false)

    admitted.resolve({ name: 'flora' })
    const [interim] = await once(socket, 'data')
    expect(`${interim}`).toBe('HTTP/1.1 100 Continue\r\n\r\n')

    service.app.server.emit('timeout', served)
    expect(served.destroyed, 'while the server waits for the body').toBe(true)
  })

  test('is cut while it takes no answers', async () => {
    const find = async () => versioned(longPlant(1n, 2 ** 20))
    const limits = { inactivityTimeoutMs: 100 }
    await using service = await startService({ plants: { find }, limits })
    const both = await service.connect()

    both.socket.write(getRequest(service, '/plants/1').repeat(50))

    await once(both.served, 'close')
  })
})

describe('a client that sends requests without waiting for answers', () => {
  test('is read no further than a packet or two while the first waits', async () => {
    await using busy = await startBusy()
    const { service, wire, served } = busy

    wire.send(longHealth.repeat(40))
    // After 50 requests of another client, the server has read whatever it would read.
    for (let turn = 0; turn < 50; turn++) {
      await service.client.ask('GET', '/healthz')
    }
    expect(served.bytesRead, 'while the first waits').toBeLessThan(200_000)

    busy.resume()
    await expect.poll(() => served.bytesRead).toBeGreaterThan(200_000)
  })

  test('gets every answer, one after the other, also to what was read late', async () => {
    let underWay = 0
    let most = 0
    await using busy = await startBusy({
      async page() {
        underWay++
        most = Math.max(most, underWay)
        await nextTurn()
        underWay--
        return []
      },
    })
    const { service, wire } = busy

    const count = 60
    wire.send(inEightKilobytes(getRequest(service, '/plants')).repeat(count))
    const [connection] = connectionsOf(service.app.server).values()
    await expect.poll(() => connection?.waiting.length).toBeGreaterThan(0)
    // Requests that wait are not late, though Node's timeout has passed.
    timeOut(service)
    busy.resume()
    const created = await wire.answer(post)
    const lists: unknown[] = []
    while (lists.length < count) {
      const list = await wire.answer(service.client.asked('GET /plants'))
      lists.push([list.status, jsonOf(list)])
    }

    assertSuccess(created, { name: 'n' })
    expect(lists).toEqual(Array(count).fill([200, []]))
    expect(most, 'pages read at once').toBe(1)
  })

  test('is cut with 17 waiting requests while thousands wait on all', async () => {
    using inserts = pausedInserts()
    await using service = await startService({ plants: inserts.plants })
    const { client } = service
    const [patient, greedy, ...flooding] = await service.connectMany(6)
    const send = (socket: Socket | undefined, count: number) =>
      socket?.write(plantRequest(client, plant) + health.repeat(count))
    const connections = connectionsOf(service.app.server)
    const countWaiting = () => {
      const counts = [...connections.values()].map(({ waiting }) => waiting.length)
      return counts.reduce((sum, count) => sum + count, 0)
    }
    for (const { socket } of flooding) {
      send(socket, 1_249)
    }
    await expect.poll(countWaiting).toBe(4 * 1_249)

    send(patient?.socket, 16)
    send(greedy?.socket, 17)
    await expect.poll(() => greedy?.served.destroyed).toBe(true)
    await expect.poll(countWaiting).toBe(4 * 1_249 + 16)
  })
})

test.each([
  {
    what: 'requests',
    head: '',
    tiny: health,
    times: 2_400,
  },
  {
    what: 'chunks',
    head: 'POST /plants HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n',
    tiny: '1\r\nx\r\n',
    times: 10_900,
  },
])('tiny $what are read in turn with those of other clients', async flood => {
  const { head, tiny, times } = flood
  const clients = 6
  await using service = await startService()
  let inTurn = 0
  let most = 0
  const note = () => {
    if (inTurn === 0) {
      setImmediate(() => {
        inTurn = 0
      })
    }
    inTurn++
    most = Math.max(most, inTurn)
  }
  service.app.server.on('request', request => {
    note()
    request.on('data', note)
  })
  const sockets = openMany(service, clients)
  await expect.poll(() => service.sockets.length).toBe(clients)

  for (const socket of sockets) {
    socket.write(head + tiny.repeat(times))
  }
  // Some are cut before their first answer: together they wait with too many requests.
  await Promise.all(sockets.map(answeredOrCut))

  expect(most).toBeGreaterThan(times / 2)
  expect(most).toBeLessThan(4 * times)
})

test('a client that was refused is read no further than a packet or two', async () => {
  await using service = await startService({ limits: { connectionsMax: 1 } })
  using _first = await service.client.open()
  const both = await service.connect()
  both.socket.resume().write(longHealth.repeat(80))
  await new Promise(resolve => both.served.once('close', resolve))
  expect(both.served.bytesRead).toBeLessThan(256 * 1024)
})

test('a client that was refused is read until one more body has arrived', async () => {
  using inserts = pausedInserts()
  await using service = await startService({ plants: inserts.plants })
  const { socket, served } = await service.connect()
  socket.resume().write(plantRequest(service.client, plant))
  await inserts.begun
  timeOut(service)
  socket.write(health)
  await service.client.ask('GET', '/healthz')
  // Only what is read ends the connection, not its time limit.
  vi.useFakeTimers({ toFake: ['setTimeout'] })

  inserts.resume()
  await once(socket, 'end')
  socket.end(longBodyHead + ' '.repeat(200_000))
  await once(served, 'close')

  expect(served.bytesRead).toBeGreaterThan(200_000)
})

const answeredOrCut = (socket: Socket) =>
  new Promise<unknown>(resolve => socket.once('data', resolve).once('close', resolve))

/** Has Node report that the request on the last connection has taken too long. */
function timeOut({ app, sockets }: Service) {
  const late = Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' })
  app.server.emit('clientError', late, sockets.at(-1))
}

function openMany(service: Service, count: number): readonly Socket[] {
  return Array.from({ length: count }, () => service.open({ allowHalfOpen: true }))
}

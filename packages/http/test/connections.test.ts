import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { DomainError, type PlantRepository } from '@plant-store/domain'
import { longPlant } from '@plant-store/domain/testing'
import {
  assertFailure,
  assertSuccess,
  jsonOf,
  plantRequest,
  toJson,
} from '@plant-store/http/testing'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { connectionsOf } from '../src/wire/node-server.ts'
import {
  getRequest,
  pausedInserts,
  type Service,
  startService,
  versioned,
} from './memory-service.ts'

afterEach(() => void vi.useRealTimers())

const plant = toJson({ id: 1n, name: 'n' })
const health = 'GET /healthz HTTP/1.1\r\nhost: h\r\n\r\n'
const longBodyHead = 'POST /plants HTTP/1.1\r\nhost: h\r\ncontent-length: 200000\r\n\r\n'
const post = { method: 'POST', target: '/plants' }

/** Answers of a service whose store fails each time. */
async function askFailing(fail: () => Promise<never>) {
  const plants = { insert: fail, save: fail, remove: fail, find: fail, page: fail }
  const service = await startService({ plants, check: fail })
  const { ask } = service.client
  const answers = await Promise.all([
    ask('POST', '/plants', { body: plant }),
    ask('PUT', '/plants/1', { body: plant }),
    ask('DELETE', '/plants/1'),
    ask('GET', '/plants/1'),
    ask('GET', '/plants'),
    ask('GET', '/readyz', { token: null }),
  ])
  await service[Symbol.asyncDispose]()
  return { ...service, answers }
}

test('each operation on a store that is unavailable gets 503', async () => {
  const { answers, logged, debugged } = await askFailing(async () => {
    throw new DomainError('store-unavailable', 'the store could not be read')
  })

  for (const answer of answers) {
    assertFailure(answer, 50302)
  }
  // Clients could fill a log. Above the level debug, it has the lines of requests only.
  expect(logged).toEqual([])
  const line = { reqId: expect.any(String), err: expect.any(DomainError) }
  expect(debugged).toEqual(Array(answers.length).fill(line))
})

test('each operation that meets a defect gets 500, and the log the reason', async () => {
  const { answers, logged } = await askFailing(async () => {
    throw new TypeError('undefined is not a function, at /secret/path')
  })

  for (const answer of answers) {
    assertFailure(answer, 50001)
    expect(`${answer.body}`).not.toMatch(/undefined|secret/)
  }
  const line = ['error', expect.stringContaining('/secret/path')]
  expect(logged).toEqual(Array(answers.length).fill(line))
})

/** Starts a service with a connection whose create waits for the store. */
async function startBusy(plants: Partial<PlantRepository> = {}) {
  const inserts = pausedInserts()
  const service = await startService({ plants: { ...inserts.plants, ...plants } })
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

describe('a connection with a slow request', () => {
  test.each([
    {
      why: 'sends rubbish',
      // Every packet is one more error to Node's parser.
      send: async ({ service, wire }: Awaited<ReturnType<typeof startBusy>>) => {
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
      send: async ({ service, wire }: Awaited<ReturnType<typeof startBusy>>) => {
        wire.send('POST /plants HTTP/1.1\r\nhost: h\r\n')
        timeOut(service)
        wire.send('content-length: 2\r\n\r\n{}')
        await service.client.ask('GET', '/healthz')
      },
      error: 40801,
    },
  ])('that $why gets both answers in order', async ({ send, error }) => {
    await using busy = await startBusy()
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
  test.each([
    {
      why: 'in the middle of a body',
      send: ({ client }: Service) =>
        plantRequest(client, plant, ['expect: 100-continue']).subarray(0, -3),
      line: { status: 400, error: 40000 },
    },
    {
      why: 'after an answer',
      send: () => health,
      line: { status: 200 },
    },
  ])('that is reset $why is no defect of the server', async ({ send, line }) => {
    await using service = await startService()
    using both = await service.connect()
    const closed = new Promise(resolve => both.served.once('close', resolve))
    both.socket.write(send(service))
    await once(both.socket, 'data')

    both.socket.resetAndDestroy()
    await closed

    await expect.poll(() => service.answered).toMatchObject([line])
    expect(service.logged).toEqual([])
  })

  test('with a body that is too large gets the answer while it still sends', async () => {
    await using service = await startService()
    const bodyBytes = 4 * 2 ** 20
    const piece = Buffer.alloc(2 ** 16, 0x20)
    const [head] = `${plantRequest(service.client, plant)}`.split('content-length')

    const socket = service.open()
    const onError = vi.fn()
    socket.on('error', onError)
    socket.write(`${head}content-length: ${bodyBytes}\r\n\r\n`)
    const answered = once(socket, 'data')
    socket.write(piece)
    const [answer] = await answered

    // The client sends the rest of its body before it looks at the answer.
    for (let sent = piece.length; sent < bodyBytes; sent += piece.length) {
      await sendPiece(socket, piece)
    }
    if (!socket.destroyed) {
      await once(socket.end(), 'close')
    }

    expect(`${answer}`).toMatch(/^HTTP\/1\.1 413 /)
    expect(onError).not.toHaveBeenCalled()
  })

  test('that was refused is cut after a second if the client keeps it open', async () => {
    await using service = await startService()
    using both = await service.connect()
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

  test.each([
    { sent: 'nothing', bytes: '' },
    { sent: 'a request', bytes: health },
    { sent: 'a long body', bytes: `${longBodyHead}${' '.repeat(200_000)}` },
    { sent: 'rubbish', bytes: 'rubbish\r\n\r\n' },
  ])('beyond the limit that sends $sent is refused and closed', async ({ bytes }) => {
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

    const sockets = openMany(service, 12)

    expect(await countAtDrop).toBe(6)
    destroyAll(sockets)
  })
})

describe('a client that is silent beyond the limit', () => {
  test('is not cut while the store is busy with a create', async () => {
    await using busy = await startBusy()

    busy.service.app.server.emit('timeout', busy.served)

    expect(busy.served.destroyed).toBe(false)
  })

  test('is not cut while the store is busy with lines of a batch', async () => {
    using inserts = pausedInserts()
    await using service = await startService({ plants: inserts.plants })
    using both = await service.connect()
    const head = [
      'POST /plants/batch HTTP/1.1',
      'host: h',
      `authorization: Bearer ${service.tokens.full}`,
      'content-type: application/x-ndjson',
      'content-length: 1000000',
    ]
    both.socket.write(`${head.join('\r\n')}\r\n\r\n${`${plant}\n`.repeat(1_000)}`)
    await inserts.begun

    service.app.server.emit('timeout', both.served)

    expect(both.served.destroyed).toBe(false)
  })

  test('is not cut while its token is looked up', async () => {
    const asked = Promise.withResolvers<void>()
    const admitted = Promise.withResolvers<{ name: string }>()
    const gate = () => {
      asked.resolve()
      return admitted.promise
    }
    await using service = await startService({ gate })
    using both = await service.connect()
    const { socket, served } = both
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
    using both = await service.connect()

    both.socket.write(getRequest(service, '/plants/1').repeat(50))

    await once(both.served, 'close')
  })
})

describe('a client that sends requests without waiting for answers', () => {
  test('is read no further than a packet or two while the first waits', async () => {
    await using busy = await startBusy()
    const { service, wire, served } = busy

    wire.send(health.repeat(8_000))
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

    const count = 500
    wire.send(getRequest(service, '/plants').repeat(count))
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
    destroyAll(service.sockets)
  })

  test.each([
    {
      what: 'requests',
      head: '',
      tiny: health,
      times: 2_400,
      clients: 12,
    },
    {
      what: 'chunks',
      head: 'POST /plants HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n',
      tiny: '1\r\nx\r\n',
      times: 10_900,
      clients: 8,
    },
  ])('with tiny $what is read at its turn beside others', async flood => {
    const { head, tiny, times, clients } = flood
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
    destroyAll(sockets)
  })

  test('and was refused is read no further than a packet or two', async () => {
    await using service = await startService({ limits: { connectionsMax: 1 } })
    using _first = await service.client.open()
    using both = await service.connect()
    both.socket.resume().write(health.repeat(20_000))
    await new Promise(resolve => both.served.once('close', resolve))
    expect(both.served.bytesRead).toBeLessThan(256 * 1024)
  })
})

const answeredOrCut = (socket: Socket) =>
  new Promise<unknown>(resolve => socket.once('data', resolve).once('close', resolve))

/** Has Node report that the request on the last connection has taken too long. */
function timeOut({ app, sockets }: Service): void {
  const late = Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' })
  app.server.emit('clientError', late, sockets.at(-1))
}

/** Sends a piece and waits until it has left or the connection is closed. */
async function sendPiece(socket: Socket, piece: Buffer): Promise<void> {
  const hasLeft = socket.write(piece)
  if (!hasLeft && !socket.destroyed) {
    await Promise.race([once(socket, 'drain'), once(socket, 'close')])
  }
}

function openMany(service: Service, count: number): readonly Socket[] {
  return Array.from({ length: count }, () => service.open({ allowHalfOpen: true }))
}

function destroyAll(sockets: readonly Socket[]): void {
  for (const socket of sockets) {
    socket.destroy()
  }
}

import dns from 'node:dns'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { DomainError } from '@plant-store/domain'
import { longPlant } from '@plant-store/domain/testing'
import {
  assertFailure,
  assertSuccess,
  jsonOf,
  plantRequest,
  toJson,
} from '@plant-store/http/testing'
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
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

test('a server starts although the headers may take longer than the request', async () => {
  await using service = await startService({
    limits: { headersTimeoutMs: 400_000, requestTimeoutMs: 600 },
  })
  using wire = await service.client.open()

  wire.send('GET /healthz HTTP/1.1\r\nhost: ')
  const answer = await wire.answer(undefined)

  assertFailure(answer, 40801)
})

test('an id of any length in a path is judged as one', async () => {
  await using service = await startService()

  const answer = await service.client.askBare(`GET /plants/${'9'.repeat(1_000)}`)

  assertFailure(answer, 40004, 'id')
})

test('localhost is one server, however many addresses it has', async () => {
  const addresses = [
    { address: '127.0.0.1', family: 4 },
    { address: '::1', family: 6 },
  ]
  type Callback = (error: null, addresses: readonly object[]) => void
  const lookUp = (_host: string, _options: object, callback: Callback) =>
    callback(null, addresses)
  const lookup = vi.spyOn(dns, 'lookup').mockImplementation(lookUp as never)
  onTestFinished(() => lookup.mockRestore())

  await using service = await startService({ host: 'localhost' })

  expect(service.app.addresses()).toMatchObject([{ address: '127.0.0.1' }])
})

interface FailingStore {
  readonly why: string
  readonly fail: () => Promise<never>
  readonly error: number
  readonly retryAfter: string | null
  /** The log of six failed requests. */
  readonly log: { readonly logged: unknown[]; readonly debugged: unknown[] }
}

const failingStores: readonly FailingStore[] = [
  {
    // Clients could fill a log. Above the level debug, it has the lines of requests only.
    why: 'is unavailable is told as 503, with the reason at the level debug',
    fail: async () => {
      const cause = new Error('the secret disk is on fire')
      throw new DomainError('store-unavailable', 'the store could not be read', { cause })
    },
    error: 50302,
    retryAfter: '1',
    log: {
      logged: [],
      debugged: Array(6).fill({
        reqId: expect.any(String),
        err: expect.any(DomainError),
      }),
    },
  },
  {
    why: 'has a defect is told as 500, with the reason in the log',
    fail: async () => {
      throw new TypeError('undefined is not a function, at /secret/path')
    },
    error: 50001,
    retryAfter: null,
    log: {
      logged: Array(6).fill(['error', expect.stringContaining('/secret/path')]),
      debugged: [],
    },
  },
]

test.each(failingStores)(
  'a store that $why',
  async ({ fail, error, retryAfter, log }) => {
    const plants = { insert: fail, save: fail, remove: fail, find: fail, page: fail }
    await using service = await startService({ plants, check: fail })
    const { client } = service

    const answers = await Promise.all([
      client.ask('POST', '/plants', { body: plant }),
      client.ask('PUT', '/plants/1', { body: plant }),
      client.ask('DELETE', '/plants/1'),
      client.ask('GET', '/plants/1'),
      client.ask('GET', '/plants'),
      client.ask('GET', '/readyz', { token: null }),
    ])
    const liveness = await client.ask('GET', '/healthz', { token: null })

    const failures = answers.map(answer => {
      const { error } = Object(jsonOf(answer))
      return { error, retryAfter: answer.headers.get('retry-after') ?? null }
    })
    expect(failures).toEqual(Array(6).fill({ error: BigInt(error), retryAfter }))
    const bodies = answers.map(({ body }) => `${body}`).join('\n')
    expect(bodies).not.toMatch(/undefined|secret/)
    expect(service).toMatchObject(log)
    assertSuccess(liveness, { status: 'ok' })
  },
)

describe('a connection', () => {
  test('that sends rubbish after a slow request gets both answers in order', async () => {
    const { plants, begun, resume } = pausedInserts()
    await using service = await startService({ plants })
    using wire = await service.client.open()
    wire.send(plantRequest(service.client, plant))
    await begun

    // Every packet is one more error to Node's parser.
    for (const rubbish of ['rubbish', 'more rubbish']) {
      const refused = refusedBy(service)
      wire.send(`${rubbish}\r\n\r\n`)
      await refused
    }
    resume()
    const created = await wire.answer(post)
    const refusal = await wire.answer(undefined)
    const bytesAfterwards = await wire.closed()

    assertSuccess(created, { name: 'n' })
    assertFailure(refusal, 40000)
    expect(`${bytesAfterwards}`).toBe('')
    await expect
      .poll(() => service.answered.map(({ status }) => status).sort())
      .toEqual([200, 400])
  })

  test('that is refused for a late request ignores the rest of it', async () => {
    const { plants, begun, resume } = pausedInserts()
    await using service = await startService({ plants })
    using wire = await service.client.open()
    wire.send(plantRequest(service.client, plant))
    await begun

    wire.send('POST /plants HTTP/1.1\r\nhost: h\r\n')
    timeOut(service)
    wire.send('content-length: 2\r\n\r\n{}')
    await service.client.ask('GET', '/healthz')
    resume()
    const created = await wire.answer(post)
    const refusal = await wire.answer(undefined)
    const bytesAfterwards = await wire.closed()

    assertSuccess(created, { name: 'n' })
    assertFailure(refusal, 40801)
    expect(`${bytesAfterwards}`).toBe('')
  })

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

    for (let time = 1; time <= 5; time++) {
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

      expect(`${answer}`, `time ${time}`).toMatch(/^HTTP\/1\.1 413 /)
      expect(onError, `time ${time}`).not.toHaveBeenCalled()
    }
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
  test.each([
    {
      why: 'a create',
      send: ({ client }: Service) => plantRequest(client, plant),
    },
    {
      why: 'a batch that has not ended',
      send: ({ tokens }: Service) => {
        const head = [
          'POST /plants/batch HTTP/1.1',
          'host: h',
          `authorization: Bearer ${tokens.full}`,
          'content-type: application/x-ndjson',
          'content-length: 1000000',
        ]
        return `${head.join('\r\n')}\r\n\r\n${`${plant}\n`.repeat(1_000)}`
      },
    },
  ])('is not cut while the store is busy with $why', async ({ send }) => {
    using inserts = pausedInserts()
    await using service = await startService({ plants: inserts.plants })
    using both = await service.connect()
    both.socket.write(send(service))
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
    using inserts = pausedInserts()
    await using service = await startService({ plants: inserts.plants })
    const { client } = service
    using both = await service.connect()
    const { socket, served } = both
    socket.write(plantRequest(client, plant))
    await inserts.begun

    const count = 100_000
    socket.write(health.repeat(count))
    // After 200 requests of another client, the server has read whatever it would read.
    for (let turn = 0; turn < 200; turn++) {
      await client.ask('GET', '/healthz')
    }
    expect(served.bytesRead, 'while the first waits').toBeLessThan(256 * 1024)

    inserts.resume()
    let answers = 0
    for await (const text of socket.setEncoding('latin1')) {
      answers += text.split('HTTP/1.1 ').length - 1
      if (answers > count / 10) {
        break
      }
    }
    const bytesOfTenth = (count / 10) * health.length
    expect(served.bytesRead, 'afterwards').toBeGreaterThan(bytesOfTenth)
  })

  test('gets every answer, one after the other, also to what was read late', async () => {
    using inserts = pausedInserts()
    let underWay = 0
    let most = 0
    const page = async () => {
      underWay++
      most = Math.max(most, underWay)
      await nextTurn()
      underWay--
      return []
    }
    await using service = await startService({ plants: { ...inserts.plants, page } })
    const { client } = service
    using wire = await client.open()
    wire.send(plantRequest(client, plant))
    await inserts.begun

    const count = 2_000
    wire.send(getRequest(service, '/plants').repeat(count))
    const [connection] = connectionsOf(service.app.server).values()
    await expect.poll(() => connection?.waiting.length).toBeGreaterThan(0)
    // Requests that wait are not late, though Node's timeout has passed.
    timeOut(service)
    inserts.resume()
    const created = await wire.answer(post)
    const lists: unknown[] = []
    while (lists.length < count) {
      const list = await wire.answer(client.asked('GET /plants'))
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
      clients: 50,
    },
    {
      what: 'chunks',
      head: 'POST /plants HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n',
      tiny: '1\r\nx\r\n',
      times: 10_900,
      clients: 30,
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
    both.socket.resume().write(health.repeat(100_000))
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

const refusedBy = ({ app }: Service) => once(app.server, 'clientError')

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

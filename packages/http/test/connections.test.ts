import dns from 'node:dns'
import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { assertFailure, assertSuccess, plantRequest, toJson } from '@plant-store/contract'
import { DomainError } from '@plant-store/domain'
import { longPlant } from '@plant-store/domain/testing'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { connectionsOf } from '../src/wire/node-server.ts'
import { heldInserts, type Service, startService } from './memory-service.ts'

afterEach(() => void vi.useRealTimers())

const plant = toJson({ id: 1n, name: 'n' })
const health = 'GET /healthz HTTP/1.1\r\nhost: h\r\n\r\n'
const post = { method: 'POST', target: '/plants' }

test('a server starts although the headers may take longer than the request', async () => {
  await using service = await startService({
    limits: { headersTimeoutMs: 400_000, requestTimeoutMs: 600 },
  })
  using wire = await service.client.open()
  wire.send('GET /healthz HTTP/1.1\r\nhost: ')
  assertFailure(await wire.answer(undefined), 40801)
})

test('an id of any length in a path is judged as one', async () => {
  await using service = await startService()
  assertFailure(
    await service.client.askBare(`GET /plants/${'9'.repeat(1_000)}`),
    40004,
    'id',
  )
})

test('localhost is one server, however many addresses it has', async () => {
  const addresses = [
    { address: '127.0.0.1', family: 4 },
    { address: '::1', family: 6 },
  ]
  const lookUp = vi.spyOn(dns, 'lookup')
  lookUp.mockImplementation(((
    _host: string,
    _options: object,
    found: (...found: unknown[]) => void,
  ) => found(null, addresses)) as typeof dns.lookup)
  try {
    await using service = await startService({ host: 'localhost' })
    expect(service.app.addresses().map(each => (each as AddressInfo).address)).toEqual([
      '127.0.0.1',
    ])
  } finally {
    lookUp.mockRestore()
  }
})

test.each<[string, () => Promise<never>, number, object]>([
  [
    'is told as 503, and the reason only at the level debug',
    async () => {
      const cause = new Error('the secret disk is on fire')
      throw new DomainError('store-unavailable', 'the store could not be read', { cause })
    },
    50302,
    // Clients could fill a log, so above the level debug only the line of the request
    // appears.
    {
      logged: [],
      debugged: Array(6).fill({
        reqId: expect.any(String),
        err: expect.any(DomainError),
      }),
    },
  ],
  [
    'is told as 500 when it is a defect, with the reason in the log only',
    async () => {
      throw new TypeError('undefined is not a function, at /secret/path')
    },
    50001,
    {
      logged: Array(6).fill(['error', expect.stringContaining('/secret/path')]),
      debugged: [],
    },
  ],
])('a store that fails %s, whatever the operation', async (_, fail, error, log) => {
  const plants = { insert: fail, save: fail, remove: fail, find: fail, page: fail }
  await using service = await startService({ plants, check: fail })
  const { client } = service
  for (const request of [
    client.ask('POST', '/plants', { body: plant }),
    client.ask('PUT', '/plants/1', { body: plant }),
    client.ask('DELETE', '/plants/1'),
    client.ask('GET', '/plants/1'),
    client.ask('GET', '/plants'),
    client.ask('GET', '/readyz', { token: null }),
  ]) {
    const answer = await request
    assertFailure(answer, error)
    if (error === 50302) {
      expect(answer.headers.get('retry-after')).toBe('1')
    }
    expect(`${answer.body}`).not.toMatch(/undefined|secret/)
  }
  expect(service).toMatchObject(log)
  assertSuccess(await client.ask('GET', '/healthz', { token: null }), { status: 'ok' })
})

describe('a connection', () => {
  test('that sends rubbish after a slow request gets both answers in order', async () => {
    const { plants, begun, letGo } = heldInserts()
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
    letGo()
    assertSuccess(await wire.answer(post), { name: 'n' })
    assertFailure(await wire.answer(undefined), 40000)
    expect(`${await wire.closed()}`).toBe('')
    await expect
      .poll(() => service.answered.map(({ status }) => status).sort())
      .toEqual([200, 400])
  })

  test('that is refused for a late request ignores the rest of it', async () => {
    const { plants, begun, letGo } = heldInserts()
    const limits = { headersTimeoutMs: 200, requestTimeoutMs: 400 }
    await using service = await startService({ plants, limits })
    using wire = await service.client.open()
    wire.send(plantRequest(service.client, plant))
    await begun
    const refused = refusedBy(service)
    wire.send('POST /plants HTTP/1.1\r\nhost: h\r\n')
    await refused
    wire.send('content-length: 2\r\n\r\n{}')
    await service.client.ask('GET', '/healthz')
    letGo()
    assertSuccess(await wire.answer(post), { name: 'n' })
    assertFailure(await wire.answer(undefined), 40801)
    expect(`${await wire.closed()}`).toBe('')
  })

  test('that is reset in the middle of a body, or between two requests, is no defect of the server', async () => {
    await using service = await startService()
    const { client, answered } = service
    for (const [sent, lines] of [
      [
        plantRequest(client, plant, ['expect: 100-continue']).subarray(0, -3),
        [{ status: 400, error: 40000 }],
      ],
      [health, [{}, { status: 200 }]],
    ] as const) {
      using both = await service.connect()
      both.socket.write(sent)
      await once(both.socket, 'data')
      both.socket.resetAndDestroy()
      await new Promise(resolve => both.served.once('close', resolve))
      await expect.poll(() => answered).toMatchObject(lines)
    }
    expect(service.logged).toEqual([])
  })

  test('with a body that is too large gets the answer while it still sends', async () => {
    await using service = await startService()
    const bytes = 4 * 2 ** 20
    const [head] = `${plantRequest(service.client, plant)}`.split('content-length')
    for (let time = 0; time < 5; time++) {
      const socket = service.open()
      const failed = vi.fn()
      socket.on('error', failed)
      socket.write(`${head}content-length: ${bytes}\r\n\r\n`)
      const answer = once(socket, 'data')
      socket.write(Buffer.alloc(2 ** 16, 0x20))
      expect(`${(await answer)[0]}`).toMatch(/^HTTP\/1\.1 413 /)
      // It has not looked at the answer yet.
      for (let sent = 2 ** 16; sent < bytes; sent += 2 ** 16) {
        if (!socket.write(Buffer.alloc(2 ** 16, 0x20)) && !socket.destroyed) {
          await Promise.race([once(socket, 'drain'), once(socket, 'close')])
        }
      }
      if (!socket.destroyed) {
        await once(socket.end(), 'close')
      }
      expect(failed).not.toHaveBeenCalled()
    }
  })

  test('that was refused is cut after a second if the client keeps it open', async () => {
    await using service = await startService()
    using both = await service.connect()
    const closed = new Promise(resolve => both.served.once('close', resolve))
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    both.socket.resume().write('rubbish\r\n\r\n')
    await once(both.socket, 'end')
    expect(both.socket.writable).toBe(true)
    vi.advanceTimersByTime(999)
    await nextTurn()
    expect(connectionsOf(service.app.server).size).toBe(1)
    vi.advanceTimersByTime(1)
    await closed
  })

  test.each([
    ['nothing', ''],
    ['a request', health],
    [
      'a long body',
      `POST /plants HTTP/1.1\r\nhost: h\r\ncontent-length: 200000\r\n\r\n${' '.repeat(200_000)}`,
    ],
    ['rubbish', 'rubbish\r\n\r\n'],
  ])('beyond the limit that sends $sent is refused and closed', async (_, sent) => {
    await using service = await startService({ limits: { connectionsMax: 1 } })
    using wire = await service.client.open()
    const accepted = once(service.app.server, 'connection')
    // Whoever waits for a time limit waits forever.
    vi.useFakeTimers({ toFake: ['setTimeout'] })
    const socket = service.open()
    const [served] = await accepted
    const closed = once(served, 'close')
    socket.write(sent)
    expect(`${(await once(socket, 'data'))[0]}`).toMatch(
      /^HTTP\/1\.1 503 .*retry-after: 1\r\n.*"error":50304/s,
    )
    await closed
    wire.send(health)
    assertSuccess(await wire.answer({ method: 'GET', target: '/healthz' }), {
      status: 'ok',
    })
    expect(service.answered).toMatchObject([{ error: 50304 }, {}])
  })

  test('beyond twice the limit is closed at once', async () => {
    await using service = await startService({ limits: { connectionsMax: 3 } })
    const all = connectionsOf(service.app.server)
    const dropped = new Promise(resolve =>
      service.app.server.once('drop', () => resolve(all.size)),
    )
    const sockets = Array.from({ length: 12 }, () =>
      service.open({ allowHalfOpen: true }),
    )
    expect(await dropped).toBe(6)
    for (const socket of sockets) {
      socket.destroy()
    }
  })
})

describe('a client that is silent beyond the limit', () => {
  const limits = { inactivityTimeoutMs: 100 }

  test.each<[string, (service: Service) => Uint8Array | string]>([
    ['a create', ({ client }) => plantRequest(client, plant)],
    [
      'a batch that has not ended',
      ({ tokens }) =>
        `POST /plants/batch HTTP/1.1\r\nhost: h\r\nauthorization: Bearer ${tokens.full}\r\ncontent-type: application/x-ndjson\r\ncontent-length: 1000000\r\n\r\n${`${plant}\n`.repeat(1_000)}`,
    ],
  ])('is not cut while the store is busy with %s', async (_, send) => {
    using held = heldInserts()
    await using service = await startService({ plants: held.plants, limits })
    using both = await service.connect()
    both.socket.write(send(service))
    await held.begun
    for (const _ of ['once', 'twice']) {
      await once(both.served, 'timeout')
      expect(both.served.destroyed).toBe(false)
    }
  })

  test('is not cut while its token is looked up', async () => {
    const admitted = Promise.withResolvers<{ name: string }>()
    await using service = await startService({ gate: () => admitted.promise, limits })
    using both = await service.connect()
    const { socket, served } = both
    socket.write(
      plantRequest(service.client, plant, ['expect: 100-continue']).subarray(
        0,
        -plant.length,
      ),
    )
    await once(served, 'timeout')
    expect(served.destroyed).toBe(false)
    admitted.resolve({ name: 'flora' })
    expect(`${(await once(socket, 'data'))[0]}`).toBe('HTTP/1.1 100 Continue\r\n\r\n')
    // Now it is its turn.
    await once(served, 'close')
  })

  test('is cut while it takes no answers', async () => {
    const find = async () => ({ plant: longPlant(1n, 2 ** 20), version: '1' as never })
    await using service = await startService({ plants: { find }, limits })
    using both = await service.connect()
    both.socket.write(
      `GET /plants/1 HTTP/1.1\r\nhost: h\r\nauthorization: Bearer ${service.tokens.full}\r\n\r\n`.repeat(
        50,
      ),
    )
    await once(both.served, 'close')
  })
})

describe('a client that sends requests without waiting for answers', () => {
  test('is read no further than a packet or two while the first waits', async () => {
    using held = heldInserts()
    await using service = await startService({ plants: held.plants })
    const { client } = service
    using both = await service.connect()
    const { socket, served } = both
    socket.write(plantRequest(client, plant))
    await held.begun
    const count = 100_000
    socket.write(health.repeat(count))
    // So many turns of the server's event loop suffice to read whatever it would read.
    for (let turn = 0; turn < 200; turn++) {
      await client.ask('GET', '/healthz')
    }
    expect(served.bytesRead).toBeLessThan(256 * 1024)
    held.letGo()
    let answers = 0
    for await (const text of socket.setEncoding('latin1')) {
      answers += text.split('HTTP/1.1 ').length - 1
      if (answers > count / 10) {
        break
      }
    }
    expect(served.bytesRead).toBeGreaterThan((count / 10) * health.length)
  })

  test('gets every answer, one after the other, also to what was read late', async () => {
    using held = heldInserts()
    let underWay = 0
    let most = 0
    const page = async () => {
      most = Math.max(most, ++underWay)
      await nextTurn()
      underWay--
      return []
    }
    const limits = { headersTimeoutMs: 200, requestTimeoutMs: 400 }
    await using service = await startService({ plants: { ...held.plants, page }, limits })
    const { client, tokens } = service
    using wire = await client.open()
    wire.send(plantRequest(client, plant))
    await held.begun
    const count = 2_000
    wire.send(
      `GET /plants HTTP/1.1\r\nhost: h\r\nauthorization: Bearer ${tokens.full}\r\n\r\n`.repeat(
        count,
      ),
    )
    await client.ask('GET', '/healthz')
    // A late request is refused in time, although older ones wait for longer.
    using late = await client.open()
    late.send('GET /healthz HTTP/1.1\r\nhost: ')
    assertFailure(await late.answer(undefined), 40801)
    held.letGo()
    assertSuccess(await wire.answer(post), { name: 'n' })
    for (let n = 0; n < count; n++) {
      assertSuccess(await wire.answer(client.asked('GET /plants')), [])
    }
    expect(most).toBe(1)
  })

  test('is cut with 17 waiting requests while thousands wait on all', async () => {
    using held = heldInserts()
    await using service = await startService({ plants: held.plants })
    const { client } = service
    const [patient, greedy, ...flooding] = await service.connectMany(6)
    const send = (socket: Socket | undefined, count: number) =>
      socket?.write(plantRequest(client, plant) + health.repeat(count))
    for (const { socket } of flooding) {
      send(socket, 1_249)
    }
    const all = connectionsOf(service.app.server)
    const waits = () =>
      [...all.values()].reduce((sum, each) => sum + each.waiting.length, 0)
    await expect.poll(waits).toBe(4 * 1_249)
    send(patient?.socket, 16)
    send(greedy?.socket, 17)
    await client.ask('GET', '/healthz')
    expect([patient, greedy].map(each => each?.served.destroyed)).toEqual([false, true])
    for (const socket of service.sockets) {
      socket.destroy()
    }
  })

  test.each([
    ['requests', '', health, 2_400, 50],
    [
      'chunks',
      'POST /plants HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n',
      '1\r\nx\r\n',
      10_900,
      30,
    ],
  ])(
    'with tiny %s is read at its turn, however many send them at once',
    async (_, head, tiny, times, count) => {
      await using service = await startService()
      let inTurn = 0
      let most = 0
      const note = () => {
        if (inTurn++ === 0) {
          setImmediate(() => (inTurn = 0))
        }
        most = Math.max(most, inTurn)
      }
      service.app.server.on('request', request => {
        note()
        request.on('data', note)
      })
      const sockets = Array.from({ length: count }, () =>
        service.open({ allowHalfOpen: true }),
      )
      await expect.poll(() => service.sockets.length).toBe(count)
      for (const socket of sockets) {
        socket.write(head + tiny.repeat(times))
      }
      // Some are cut before their first answer: together they wait with too many
      // requests.
      await Promise.all(sockets.map(answeredOrCut))
      expect(most).toBeGreaterThan(times / 2)
      expect(most).toBeLessThan(4 * times)
      for (const socket of sockets) {
        socket.destroy()
      }
    },
  )

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

const refusedBy = ({ app }: Service) => once(app.server, 'clientError')

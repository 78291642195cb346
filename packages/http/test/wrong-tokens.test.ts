import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { AccessError, type Gate } from '@plant-store/access'
import { assertFailure, createClient, createRecorder, plantRequest, toJson } from '@plant-store/contract'
import { createMemoryPlantRepository, longPlant } from '@plant-store/domain/testing'
import { createThrottle } from '@plant-store/http'
import { expect, onTestFinished, test, vi } from 'vitest'
import { type MemoryServiceOptions, startMemoryService } from './memory-service.ts'

const wrongTokensMax = 5

async function start(options: MemoryServiceOptions = {}) {
  const service = await startMemoryService({ ...options, limits: { wrongTokensMax, ...options.limits } })
  const sockets = new Set<Socket>()
  service.server.server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  const client = createClient(service, createRecorder(await service.description()))
  const guess = (number: number, headers: Record<string, string> = {}) =>
    client.ask('GET', '/plants', { token: `guess-${number}`, headers })
  return {
    service,
    client,
    guess,
    /** Those that the server has open. */
    sockets: sockets as ReadonlySet<Socket>,
    async [Symbol.asyncDispose]() {
      client.close()
      await service[Symbol.asyncDispose]()
    },
  }
}

const closed = (sockets: Iterable<Socket>) =>
  Promise.all(Array.from(sockets, socket => once(socket, 'close')))

test('who sends one wrong token after the other is told to wait, and how long', async () => {
  await using server = await start()
  for (let n = 0; n < wrongTokensMax; n++) assertFailure(await server.guess(n), 40102)
  const answer = await server.guess(wrongTokensMax)
  assertFailure(answer, 42901, /^too many wrong access tokens from this address: try again later$/)
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(Number(answer.headers.get('retry-after'))).toBeLessThanOrEqual(60)
})

test('a minute begins with the first wrong token, and the wait is what is left of it', () => {
  let seconds = 1_000_000n
  const clock = vi.spyOn(process.hrtime, 'bigint').mockImplementation(() => seconds * 1_000_000_000n)
  onTestFinished(() => clock.mockRestore())
  const throttle = createThrottle(2)
  const waits = () => [1, 2, 3, 4].map(() => throttle('192.0.2.1'))
  for (const _ of ['minute', 'next']) {
    expect(waits()).toEqual([0, 0, 60, 60])
    seconds += 59n
    expect(throttle('192.0.2.1')).toBe(1)
    seconds += 1n
  }
})

test('what is no address counts as it is', () => {
  const throttle = createThrottle(1)
  expect(['unknown', '_hidden', 'unknown', '_hidden'].map(throttle)).toEqual([0, 0, 60, 60])
})

test('a wrong token that another thread counts meanwhile is counted too', () => {
  const counts = new SharedArrayBuffer(8)
  const [one, other] = [createThrottle(1, counts), createThrottle(1, counts)]
  const race = vi.spyOn(Atomics, 'compareExchange').mockImplementationOnce(() => {
    expect(other('192.0.2.1')).toBe(0)
    return -1n as never
  })
  onTestFinished(() => race.mockRestore())
  expect(one('192.0.2.1')).toBeGreaterThan(0)
})

test('meanwhile a good token is let in, also at its first use, and a missing one is told apart', async () => {
  await using server = await start()
  const { full, readOnly, expired } = server.service.tokens
  for (let n = 0; n < 2 * wrongTokensMax; n++) await server.guess(n)
  expect((await server.client.ask('GET', '/plants', { token: full })).status).toBe(200)
  assertFailure(await server.client.ask('DELETE', '/plants/1', { token: readOnly }), 40301)
  assertFailure(await server.client.ask('GET', '/plants', { token: expired }), 42901)
  assertFailure(await server.client.ask('GET', '/plants', { token: null }), 40101)
  expect((await server.client.ask('GET', '/readyz', { token: 'guess' })).status).toBe(200)
})

test.each<[string, (refuse: () => never) => Gate]>([
  ['at once', refuse => () => refuse()],
  ['later', refuse => async () => refuse()],
])('what a gate refuses %s counts, on every path', async (_, makeGate) => {
  await using server = await start({
    gate: makeGate(() => {
      throw new AccessError('invalid-token', 'the access token is unknown')
    }),
  })
  const paths = ['/plants', '/metrics', '/nowhere', '/plants/1', '/plants'] as const
  for (const path of paths) assertFailure(await server.client.ask('GET', path, { token: 'guess' }), 40102)
  for (const path of paths) assertFailure(await server.client.ask('GET', path, { token: 'guess' }), 42901)
})

test('servers that are given the same counts count together', async () => {
  const wrongTokenCounts = new SharedArrayBuffer(8)
  await using one = await start({ wrongTokenCounts })
  await using other = await start({ wrongTokenCounts })
  const answers = await Promise.all(
    Array.from({ length: 4 * wrongTokensMax }, (_, n) => (n % 2 ? one : other).guess(n)),
  )
  expect(answers.filter(({ status }) => status === 401)).toHaveLength(wrongTokensMax)
  expect((await other.client.ask('GET', '/plants')).status).toBe(200)
})

test('good tokens and missing ones are no wrong ones', async () => {
  await using server = await start()
  for (let n = 0; n < 3 * wrongTokensMax; n++) {
    expect((await server.client.ask('GET', '/plants')).status).toBe(200)
    assertFailure(await server.client.ask('GET', '/plants', { token: null }), 40101)
    assertFailure(
      await server.client.ask('DELETE', '/plants/1', { token: server.service.tokens.readOnly }),
      40301,
    )
  }
})

test('a header that anyone can send does not make another client of one', async () => {
  await using server = await start()
  for (let n = 0; n < wrongTokensMax; n++) await server.guess(n, { 'x-forwarded-for': `192.0.2.${n}` })
  assertFailure(await server.guess(99, { 'x-forwarded-for': '192.0.2.99' }), 42901)
})

test('behind a proxy that is trusted each of its clients counts for itself', async () => {
  await using server = await start({ trustedProxies: ['127.0.0.1'] })
  for (let n = 0; n < wrongTokensMax; n++) await server.guess(n, { 'x-forwarded-for': '192.0.2.1' })
  assertFailure(await server.guess(10, { 'x-forwarded-for': '192.0.2.1' }), 42901)
  // What the client itself wrote stands before what the proxy adds.
  assertFailure(await server.guess(11, { 'x-forwarded-for': '192.0.2.7, 192.0.2.1' }), 42901)
  assertFailure(await server.guess(12, { 'x-forwarded-for': '192.0.2.2' }), 40102)
  // An IPv4 address in the form of IPv6 is the same one, and what is no address counts as it is.
  assertFailure(await server.guess(13, { 'x-forwarded-for': '::ffff:192.0.2.1' }), 42901)
  assertFailure(await server.guess(14, { 'x-forwarded-for': 'unknown' }), 40102)
})

test('addresses of one IPv6 network are one client', async () => {
  await using server = await start({ trustedProxies: ['127.0.0.1'] })
  const from = (address: string) => ({ 'x-forwarded-for': address })
  for (let n = 0; n < wrongTokensMax; n++) await server.guess(n, from(`2001:db8:0:1::${n}`))
  assertFailure(await server.guess(20, from('2001:db8::1:ffff:0:0:1')), 42901)
  assertFailure(await server.guess(21, from('2001:db8:0:2::1')), 40102)
})

test('who connects past the limit is told so, and the others are served', async () => {
  await using server = await start({ limits: { connectionsMax: 3, wrongTokensMax: 100 } })
  const { client, sockets } = server
  for (const socket of sockets) socket.destroy()
  await closed(sockets)
  const wires = [await client.open(), await client.open(), await client.open()]
  const request = `GET ${client.target('/healthz')} HTTP/1.1\r\nhost: h\r\n\r\n`
  const asked = { method: 'GET', target: client.target('/healthz') }
  for (const wire of wires) wire.send(request)
  for (const wire of wires) expect((await wire.answer(asked)).status).toBe(200)
  {
    using late = await client.open()
    const answer = await late.answer(undefined)
    assertFailure(answer, 50304)
    expect(answer.headers.get('retry-after')).toBe('1')
    await late.closed()
  }
  // A request that is on its way already is not done.
  {
    using late = await client.open()
    late.send(plantRequest(client, toJson({ id: 5n, name: 'late' })))
    assertFailure(await late.answer(undefined), 50304)
    await late.closed()
  }
  for (const wire of wires) wire.send(request)
  for (const wire of wires) expect((await wire.answer(asked)).status).toBe(200)
  const left = closed(sockets)
  for (const wire of wires) wire[Symbol.dispose]()
  await left
  using again = await client.open()
  again.send(
    `GET ${client.target('/plants/5')} HTTP/1.1\r\nhost: h\r\nauthorization: Bearer ${server.service.tokens.full}\r\n\r\n`,
  )
  assertFailure(await again.answer({ method: 'GET', target: client.target('/plants/5') }), 40402)
})

test('a client that takes no answers is cut off', async () => {
  await using server = await start({ limits: { inactivityTimeoutMs: 300, wrongTokensMax: 100 } })
  const { client } = server
  for (let id = 0n; id < 20n; id++)
    await client.ask('POST', '/plants', { body: toJson(longPlant(id, 200_000)) })
  const { hostname, port } = new URL(server.service.url)
  const connected = once(server.service.server.server, 'connection')
  const socket = connect({ host: hostname, port: Number(port) })
  const [served] = (await connected) as [Socket]
  socket.on('error', () => {})
  socket.pause()
  const request = `GET ${client.target('/plants')} HTTP/1.1\r\nhost: h\r\nauthorization: Bearer ${server.service.tokens.full}\r\n\r\n`
  socket.write(request.repeat(50))
  await once(served, 'close')
  socket.destroy()
}, 20_000)

test('requests sent without waiting are taken one at a time, and no more are read than a few', async () => {
  const memory = createMemoryPlantRepository()
  let underWay = 0
  let most = 0
  let begun = 0
  const isBegun = Promise.withResolvers<void>()
  const letGo = Promise.withResolvers<void>()
  await using server = await start({
    plants: {
      async page(query) {
        begun++
        isBegun.resolve()
        most = Math.max(most, ++underWay)
        await letGo.promise
        underWay--
        return memory.page(query)
      },
    },
  })
  const { client } = server
  const connected = once(server.service.server.server, 'connection')
  using wire = await client.open()
  const [socket] = (await connected) as [Socket]
  const request = `GET ${client.target('/plants')} HTTP/1.1\r\nhost: h\r\nauthorization: Bearer ${server.service.tokens.full}\r\n\r\n`
  const count = 3_000
  for (let n = 0; n < count; n++) wire.send(request)
  await isBegun.promise
  // Each is a turn of the server, in which it could read more.
  for (let turn = 0; turn < 50; turn++) await client.ask('GET', '/healthz', { token: null })
  expect(begun).toBe(1)
  expect(socket.bytesRead).toBeLessThanOrEqual(2 * 65_536)
  letGo.resolve()
  for (let n = 0; n < count; n++)
    expect((await wire.answer({ method: 'GET', target: client.target('/plants') })).status).toBe(200)
  expect([most, begun]).toEqual([1, count])
}, 20_000)

test('a body that breaks while its token is looked up gets its answer all the same', async () => {
  await using server = await start()
  const { client } = server
  const asked = { method: 'POST', target: client.target('/plants') }
  // Each with a token that is not known yet, so that the error is there before anybody reads the body.
  for (const token of [server.service.tokens.full, server.service.tokens.writeOnly]) {
    const request = `POST ${asked.target} HTTP/1.1\r\nhost: h\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n`
    assertFailure(await client.exchange(asked, request), 40000)
  }
})

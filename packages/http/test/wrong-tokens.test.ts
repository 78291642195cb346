import { once } from 'node:events'
import { AccessError, type Gate } from '@plant-store/access'
import { assertFailure, plantRequest, toJson } from '@plant-store/contract'
import { longPlant } from '@plant-store/domain/testing'
import { expect, onTestFinished, test, vi } from 'vitest'
import { connectionsOf } from '../src/connection/node-server.ts'
import { createThrottle } from '../src/request/wrong-tokens.ts'
import { type MemoryServiceOptions, startWithClient } from './memory-service.ts'

const wrongTokensMax = 5

async function start(options: MemoryServiceOptions = {}) {
  const limits = { wrongTokensMax, ...options.limits }
  const service = await startWithClient({ ...options, limits })
  const guess = (number: number, headers: Record<string, string> = {}) =>
    service.client.ask('GET', '/plants', { token: `guess-${number}`, headers })
  return { ...service, guess }
}

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
  const { full, readOnly, expired } = server.tokens
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
    assertFailure(await server.client.ask('DELETE', '/plants/1', { token: server.tokens.readOnly }), 40301)
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

test.each([
  ['IPv4', (n: number) => `192.0.2.1:${1_000 + n}`, '192.0.2.1', '192.0.2.2:1000'],
  ['IPv6', (n: number) => `[2001:db8::${n}]:${1_000 + n}`, '2001:db8::a', '[2001:db8:0:1::1]:1000'],
])('a proxy may write the port behind an address: %s', async (_, address, bare, other) => {
  await using server = await start({ trustedProxies: ['127.0.0.1', '10.0.0.0/8', 'fd00::/8'] })
  const from = (...addresses: string[]) => ({ 'x-forwarded-for': addresses.join(', ') })
  for (let n = 0; n < wrongTokensMax; n++) assertFailure(await server.guess(n, from(address(n))), 40102)
  assertFailure(await server.guess(10, from(address(10))), 42901)
  assertFailure(await server.guess(11, from(bare)), 42901)
  // Also behind the address of a trusted proxy.
  assertFailure(await server.guess(12, from(address(12), '[fd00::1]:443', '10.0.0.1:443')), 42901)
  assertFailure(await server.guess(13, from(other)), 40102)
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
  const { client } = server
  const open = () => connectionsOf(server.server.server).size
  server.server.server.closeIdleConnections()
  await expect.poll(open).toBe(0)
  const wires = [await client.open(), await client.open(), await client.open()]
  const allAreServed = async () => {
    for (const wire of wires) wire.send('GET /healthz HTTP/1.1\r\nhost: h\r\n\r\n')
    for (const wire of wires) expect((await wire.answer(client.asked('GET /healthz'))).status).toBe(200)
  }
  await allAreServed()
  // A request that is on its way already is not done.
  for (const sent of ['', plantRequest(client, toJson({ id: 5n, name: 'late' }))]) {
    using late = await client.open()
    late.send(sent)
    const answer = await late.answer(undefined)
    assertFailure(answer, 50304)
    expect(answer.headers.get('retry-after')).toBe('1')
    await late.closed()
  }
  await allAreServed()
  for (const wire of wires) wire[Symbol.dispose]()
  await expect.poll(open).toBe(0)
  assertFailure(await client.askBare('GET /plants/5'), 40402)
})

test('a client that takes no answers is cut off', async () => {
  await using server = await start({ limits: { inactivityTimeoutMs: 300, wrongTokensMax: 100 } })
  const { client } = server
  for (let id = 0n; id < 20n; id++) await client.post(toJson(longPlant(id, 200_000)))
  const connected = once(server.server.server, 'connection')
  using socket = server.connect()
  const [served] = await connected
  const request = `GET ${client.target('/plants')} HTTP/1.1\r\nhost: h\r\nauthorization: Bearer ${server.tokens.full}\r\n\r\n`
  socket.write(request.repeat(50))
  await once(served, 'close')
}, 20_000)

test('a body that breaks while its token is looked up gets its answer all the same', async () => {
  await using server = await start()
  const { client } = server
  const asked = client.asked('POST /plants')
  // Each with a token that is not known yet, so that the error is there before anybody reads the body.
  for (const token of [server.tokens.full, server.tokens.writeOnly]) {
    const request = `POST ${asked.target} HTTP/1.1\r\nhost: h\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n`
    assertFailure(await client.exchange(asked, request), 40000)
  }
})

import { AccessError, type Gate } from '@plant-store/access'
import { assertFailure } from '@plant-store/contract'
import { expect, onTestFinished, test, vi } from 'vitest'
import { createThrottle } from '../src/request/wrong-tokens.ts'
import { type ServiceOptions, startService } from './memory-service.ts'

const wrongTokensMax = 5

async function start(options: ServiceOptions = {}) {
  const service = await startService({ ...options, limits: { wrongTokensMax } })
  const guess = (number: number, headers: Record<string, string> = {}) =>
    service.client.ask('GET', '/plants', { token: `guess-${number}`, headers })
  return { ...service, guess }
}

test('only wrong tokens count, and who sends one after the other is told to wait, and how long', async () => {
  await using service = await start()
  const { client, tokens } = service
  const { full, readOnly, expired } = tokens
  const askOthers = async () => {
    expect((await client.ask('GET', '/plants', { token: full })).status).toBe(200)
    assertFailure(await client.ask('DELETE', '/plants/1', { token: readOnly }), 40301)
    assertFailure(await client.ask('GET', '/plants', { token: null }), 40101)
    expect((await client.ask('GET', '/readyz', { token: 'guess' })).status).toBe(200)
  }
  for (let n = 0; n < wrongTokensMax; n++) {
    assertFailure(await service.guess(n), 40102)
    await askOthers()
  }
  const answer = await service.guess(wrongTokensMax)
  assertFailure(
    answer,
    42901,
    /^too many wrong access tokens from this address: try again later$/,
  )
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(Number(answer.headers.get('retry-after'))).toBeLessThanOrEqual(60)
  assertFailure(await client.ask('GET', '/plants', { token: expired }), 42901)
  await askOthers()
})

test('a minute begins with the first wrong token, and the wait is what is left of it', () => {
  let seconds = 1_000_000n
  const clock = vi
    .spyOn(process.hrtime, 'bigint')
    .mockImplementation(() => seconds * 1_000_000_000n)
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
  expect(['unknown', '_hidden', 'unknown', '_hidden'].map(throttle)).toEqual([
    0, 0, 60, 60,
  ])
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

test.each<[string, (refuse: () => never) => Gate]>([
  ['at once', refuse => () => refuse()],
  ['later', refuse => async () => refuse()],
])('what a gate refuses %s counts, on every path', async (_, makeGate) => {
  await using service = await start({
    gate: makeGate(() => {
      throw new AccessError('invalid-token', 'the access token is unknown')
    }),
  })
  const paths = ['/plants', '/metrics', '/nowhere', '/plants/1', '/plants'] as const
  for (const error of [40102, 42901]) {
    for (const path of paths) {
      assertFailure(await service.client.ask('GET', path, { token: 'guess' }), error)
    }
  }
})

test('servers that are given the same counts count together', async () => {
  const wrongTokenCounts = new SharedArrayBuffer(8)
  await using one = await start({ wrongTokenCounts })
  await using other = await start({ wrongTokenCounts })
  const answers = await Promise.all(
    Array.from({ length: 4 * wrongTokensMax }, (_, n) => (n % 2 ? one : other).guess(n)),
  )
  expect(answers.filter(({ status }) => status === 401)).toHaveLength(wrongTokensMax)
})

/** Each address sends as many wrong tokens as it may, and then one more, or is another client. */
test.each<[string, string[], (n: number) => string, ...same: string[]]>([
  [
    'without a trusted proxy everybody is one client',
    [],
    n => `192.0.2.${n}`,
    '192.0.2.99',
  ],
  // What the client itself wrote stands before what the proxy adds.
  [
    'an address, also in the form of IPv6',
    ['127.0.0.1'],
    () => '192.0.2.1',
    ...['192.0.2.1', '192.0.2.7, 192.0.2.1', '::ffff:192.0.2.1'],
  ],
  [
    'IPv4 with a port, also behind another trusted proxy',
    ['127.0.0.1', '10.0.0.0/8', 'fd00::/8'],
    n => `192.0.2.1:${1_000 + n}`,
    ...['192.0.2.1:1010', '192.0.2.1', '192.0.2.1:1012, [fd00::1]:443, 10.0.0.1:443'],
  ],
  [
    'a network of IPv6, with a port or without',
    ['127.0.0.1'],
    n => (n % 2 ? `[2001:db8:0:1::${n}]:${1_000 + n}` : `2001:db8:0:1::${n}`),
    ...['2001:db8::1:ffff:0:0:1', '[2001:db8:0:1::a]:443'],
  ],
])(
  'behind a proxy that is trusted each of its clients counts for itself: %s',
  async (_, trustedProxies, from, ...same) => {
    await using service = await start({ trustedProxies })
    const guess = (n: number, address: string) =>
      service.guess(n, { 'x-forwarded-for': address })
    for (let n = 0; n < wrongTokensMax; n++) {
      assertFailure(await guess(n, from(n)), 40102)
    }
    for (const address of same) {
      assertFailure(await guess(99, address), 42901)
    }
    if (trustedProxies.length === 0) {
      return
    }
    for (const other of [
      '192.0.2.2',
      '192.0.2.2:1000',
      '[2001:db8:0:2::1]:1000',
      'unknown',
    ]) {
      assertFailure(await guess(100, other), 40102)
    }
  },
)

test('a body that breaks while its token is looked up gets its answer all the same', async () => {
  await using service = await start()
  const { client, tokens } = service
  const asked = client.asked('POST /plants')
  // Each with a token that is not known yet, so that the error is there before anybody reads the body.
  for (const token of [tokens.full, tokens.writeOnly]) {
    const request = `POST /plants HTTP/1.1\r\nhost: h\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n`
    assertFailure(await client.exchange(asked, request), 40000)
  }
})

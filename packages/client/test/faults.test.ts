import { runInNewContext } from 'node:vm'
import {
  createPlantClient,
  type Fetch,
  NoAnswerError,
  type PlantClient,
  type Version,
} from '@plant-store/client'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { answer, breakOff, die, type Step, scripted, silence } from './scripted-store.ts'

// No random part of a wait is waited for.
beforeEach(() => void vi.spyOn(Math, 'random').mockReturnValue(0))

const plant = { id: 1n, name: 'Ficus' }
const stored = answer(200, '{"id":1,"name":"Ficus"}')
const created = answer(200, '{"name":"Ficus"}', { etag: '"v2"' })
const v1 = 'v1' as Version
const v2 = 'v2' as Version
const current = { item: plant, version: v2 }
const replaced = { ...current, created: false }
const removed: Step = response => response.writeHead(204).end()
const forbidden = refuse(403, 40301)

function refuse(status: number, error: number) {
  return answer(status, { error, message: 'refused' })
}

function html(status: number) {
  return answer(status, '<h1>Bad Gateway</h1>', { 'content-type': 'text/html' })
}

type Call = (client: PlantClient) => Promise<unknown>

const read: Call = client => client.read(1n)
const create: Call = client => client.create(plant)
const replace: Call = client => client.replace(plant)
const replaceFirst: Call = client => client.replace(plant, { ifMatch: v1 })
const remove: Call = client => client.remove(1n)

test.each(
  Object.entries({
    'an answer that breaks off': breakOff,
    'a limit on requests': refuse(429, 42900),
    "a proxy's failure": html(502),
    "a proxy's time-out": html(504),
  }),
)('reading, replacing and removing pass over %s', async (_name, fault) => {
  await using store = await scripted([fault, stored, fault, created, fault, removed])
  const { client, requests } = store

  const results = [await read(client), await replace(client), await remove(client)]

  expect(results).toEqual([plant, replaced, undefined])
  const methods = requests.map(({ method }) => method)
  expect(methods.join(' ')).toBe('GET GET PUT PUT DELETE DELETE')
  expect(requests[2]?.body).toBe(requests[3]?.body)
})

test.each([50301, 50303, 50304, 50305, 50306, 42900])(
  'creating passes over %d, because nothing was changed',
  async number => {
    const refusal = refuse(Math.floor(number / 100), number)
    await using store = await scripted([refusal, refusal, created])

    expect(await store.client.create(plant)).toEqual(plant)
  },
)

const unknown = { mayHaveChanged: true }
const unchanged = { mayHaveChanged: false }
const unreadable = { reason: 'unreadable-answer' }
const otherStore = { ...unreadable, status: 400, ...unchanged }
const lost = [die, refuse(412, 41201)]
const tagged = (etag: string) => answer(200, '{"id":1,"name":"Ficus"}', { etag })
const readVersioned: Call = client => client.readVersioned(1n)

/** Each call ends with the last answer of its script: a further request gets another. */
test.each<[what: string, call: Call, script: readonly Step[], error: object]>([
  ['a create whose answer breaks off', create, [breakOff], unknown],
  ['a create that meets a defect', create, [refuse(500, 50001)], unknown],
  [
    "a create that meets a proxy's 503",
    create,
    [html(503)],
    {
      ...unreadable,
      status: 503,
      message:
        'the answer with status 503 is not from a plant store; it is unknown whether the change was made',
    },
  ],
  [
    'a create with a 201 that reads like a refusal',
    create,
    [answer(201, { error: 40002, message: 'no' })],
    unknown,
  ],
  ['a create with a 200 that is no plant', create, [answer(200, '[]')], unknown],
  [
    'a create that is redirected',
    create,
    [answer(307, '', { location: '/elsewhere' })],
    unknown,
  ],
  ...[
    '{"error":40002}',
    '{"error":"40002","message":"no"}',
    '{"message":"no"}',
    'null',
  ].map((body): [string, Call, Step[], object] => [
    `a create with a 400 of ${body}`,
    create,
    [answer(400, body)],
    otherStore,
  ]),
  ['a read that is refused', read, [refuse(400, 40002)], { number: 40002, ...unchanged }],
  ['a read that meets a defect', read, [refuse(500, 50001)], unchanged],
  ['a read of no plant', read, [answer(200, '{"name":5}')], unchanged],
  ['a read of no JSON', read, [html(200)], unchanged],
  ['a read of another id', read, [answer(200, '{"id":2,"name":"Ficus"}')], unchanged],
  ['a read without a tag', readVersioned, [stored], unreadable],
  ...['v1', 'v"v1"', '"v1"v', '""', '"a b"'].map(
    (etag): [string, Call, Step[], object] => [
      `a read with the entity tag ${etag}`,
      readVersioned,
      [tagged(etag)],
      unreadable,
    ],
  ),
  ["a change that a proxy's 404 follows", replace, [die, html(404)], unknown],
  ['a removal that is forbidden then', remove, [die, forbidden], { number: 40301 }],
  [
    'a change that cannot be read back',
    replaceFirst,
    [...lost, forbidden],
    { number: 41201, ...unknown },
  ],
])('%s fails, and nothing more is sent', async (_, call, script, error) => {
  await using store = await scripted(script)

  await expect(call(store.client)).rejects.toMatchObject(error)
  expect(store.requests).toHaveLength(script.length)
})

const ofDeno = (part: string, why: string) =>
  new Error(
    `error sending request for url (http://store/plants): client error (${part}): ${why}`,
  )
const unconnectedCodes = [
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  'ConnectionRefused',
  'CERT_HAS_EXPIRED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'ERR_TLS_CERT_ALTNAME_INVALID',
]

/** Returns an error with this code from another realm, so it is no instance of Error. */
function foreignError(code: string) {
  return runInNewContext("Object.assign(new Error('refused'), { code })", { code })
}

test.each<[string, unknown, isRepeated: boolean]>([
  ...unconnectedCodes.map((code): [string, unknown, boolean] => [
    code,
    foreignError(code),
    true,
  ]),
  ['Connect', ofDeno('Connect', 'tcp connect error: refused (os error 111)'), true],
  ['a forbidden port', new Error('bad port'), true],
  // The plant may be there.
  ['a reset', Object.assign(new Error('reset'), { code: 'ECONNRESET' }), false],
  ['SendRequest', ofDeno('SendRequest', 'connection closed before'), false],
])('creating is repeated after %s: %s %s', async (_, cause, isRepeated) => {
  const failure = new TypeError('fetch failed', { cause })
  const fetch = vi.fn(() => Promise.reject(failure))
  const baseUrl = 'http://store'
  const client = createPlantClient({ baseUrl, token: 't', attemptsMax: 2, fetch })

  await expect(client.create(plant)).rejects.toMatchObject({
    message: expect.stringMatching(/^no answer: the connection failed/),
    cause: failure,
    mayHaveChanged: !isRepeated,
  })
  expect(fetch).toHaveBeenCalledTimes(isRepeated ? 2 : 1)
})

test('a creation that was made by a lost attempt is one', async () => {
  await using store = await scripted([...lost, tagged('"v2"')])

  const replacing = store.client.replace(plant, { ifNoneMatch: '*' })

  expect(await replacing).toEqual({ ...current, created: true })
  const conditions = store.requests.map(({ headers }) => headers['if-none-match'])
  expect(conditions).toEqual(['*', '*', undefined])
})

test('a caller who gives up while the plant is read back gets the reason', async () => {
  const caller = new AbortController()
  const giveUp: Step = () => caller.abort(new Error('given up'))
  await using store = await scripted([...lost, giveUp])

  const options = { ifMatch: v1, signal: caller.signal }
  await expect(store.client.replace(plant, options)).rejects.toThrow('given up')
})

test.each(
  Object.entries({
    nginx: 'W/"v2"',
    Apache: '"v2-gzip"',
    'Apache with Brotli': '"v2-br"',
    Caddy: '"v2-zstd"',
    Jetty: '"v2--gzip"',
    'Apache before 2.4': '"v2;gzip"',
    'two proxies': 'W/"v2-gzip"',
  }),
)('an entity tag that %s has changed names the same version: %s', async (_, etag) => {
  await using store = await scripted([tagged(etag)])

  expect(await store.client.readVersioned(1n)).toEqual(current)
})

describe('what cannot be sent is not tried again', () => {
  const secret = 'plantstore_secret'

  test.each([
    ['two lines', `${secret}\n`],
    ['a blank', `${secret} `],
    ['the scheme', `Bearer ${secret}`],
    ['nothing', ''],
    ['no text', undefined as never],
  ])('a token of %s, which no message repeats', async (_, token) => {
    const options = { token: vi.fn(() => token) }
    await using store = await scripted([created], options)

    const error = await store.client.create(plant).catch(error => error)

    expect(error).toBeInstanceOf(TypeError)
    expect(error.message).toMatch(/^the access token must be one word/)
    expect(error.message).not.toContain(secret)
    expect(options.token).toHaveBeenCalledOnce()
    expect(store.requests).toEqual([])
  })

  test('a request without a fetch', async () => {
    vi.stubGlobal('fetch', undefined)
    const client = createPlantClient({ baseUrl: 'http://store', token: 't' })

    await expect(client.create(plant)).rejects.toThrow(
      new TypeError('there is no fetch: pass one as an option'),
    )
  })

  test.each([
    'localhost:3000',
    'ftp://store.example',
    `http://flora:${secret}@store.example`,
    'http://store.example/?a=b',
    'http://store.example/#plants',
  ])('a request to a base URL of %j, which no message repeats', baseUrl => {
    const create = () => createPlantClient({ baseUrl, token: 't' })

    expect(create).toThrow(/^baseUrl must be an http or https URL[^@]*$/)
    expect(create).toThrow(TypeError)
  })
})

test.each(['', '"', 'a", "b', 'a\r\nb: c'] as Version[])(
  '%j is no condition, and is not sent',
  async ifMatch => {
    await using store = await scripted([])
    const { client } = store

    await expect(client.replace(plant, { ifMatch })).rejects.toThrow(TypeError)
    await expect(client.remove(1n, { ifMatch })).rejects.toThrow(TypeError)
    const ifNoneMatch = ifMatch as never
    await expect(client.replace(plant, { ifNoneMatch })).rejects.toThrow(TypeError)
    expect(store.requests).toEqual([])
  },
)

describe('options', () => {
  const options = { baseUrl: 'http://store', token: 't' }

  test.each([
    { timeoutMs: 0 },
    { timeoutMs: Number.NaN },
    { timeoutMs: 2 ** 31 },
    { timeoutMs: '1000' as never },
    { attemptsMax: 0 },
    { attemptsMax: 1.5 },
    { attemptsMax: Number.POSITIVE_INFINITY },
    { token: undefined as never },
    { fetch: 'fetch' as never },
  ])('of %j are refused when the client is made', wrong => {
    expect(() => createPlantClient({ ...options, ...wrong })).toThrow(TypeError)
  })

  test.each([Number.POSITIVE_INFINITY, 2 ** 31 - 1])(
    'may give an attempt %d milliseconds',
    async timeoutMs => {
      await using store = await scripted([stored], { timeoutMs })

      expect(await store.client.read(1n)).toEqual(plant)
    },
  )

  test('may have the fetch of a package, which returns an answer of its own', async () => {
    const headers = { get: () => null }
    const fetch = async () => ({ status: 200, headers, text: async () => '[]' })
    const client = createPlantClient({ ...options, fetch })

    expect(await client.list()).toEqual({ items: [] })
  })
})

test('a create that gets no answer in time is not repeated', async () => {
  const fetch = vi.fn<Fetch>((_, { signal }) => silence(signal))
  const options = { baseUrl: 'http://store', token: 't', timeoutMs: 50 }
  const client = createPlantClient({ ...options, fetch })

  const error: unknown = await client.create(plant).catch(error => error)

  expect(error).toBeInstanceOf(NoAnswerError)
  expect(error).toMatchObject({
    reason: 'timed-out',
    mayHaveChanged: true,
    message: expect.stringMatching(/^no answer within 50 ms; it is unknown/),
    cause: { name: 'AbortError' },
  })
  expect(fetch).toHaveBeenCalledOnce()
})

/** Returns a function whose token never arrives. */
function fetchTokenForever() {
  const never = new Promise<string>(() => {})
  return vi.fn(() => never)
}

test('a signal gives up while the token is fetched', async () => {
  const token = fetchTokenForever()
  const client = createPlantClient({ baseUrl: 'http://store', token })
  const caller = new AbortController()

  const reading = client.read(1n, { signal: caller.signal })
  caller.abort(new Error('the caller has gone'))

  await expect(reading).rejects.toThrow('the caller has gone')
  expect(token).toHaveBeenCalledOnce()
})

test('the time-out holds while the token is fetched, and is repeated', async () => {
  const token = fetchTokenForever()
  await using store = await scripted([], { token, timeoutMs: 50, attemptsMax: 2 })

  await expect(store.client.create(plant)).rejects.toMatchObject({
    reason: 'timed-out',
    message: 'no access token within 50 ms',
    mayHaveChanged: false,
  })
  expect(token).toHaveBeenCalledTimes(2)
  expect(store.requests).toHaveLength(0)
}, 5_000)

test('what the token is refused with comes through, and nothing is sent', async () => {
  const refusal = new Error('no such account')
  const token = vi.fn(() => Promise.reject(refusal))
  await using store = await scripted([], { token })

  await expect(store.client.read(1n)).rejects.toBe(refusal)
  expect(token).toHaveBeenCalledTimes(1)
  expect(store.requests).toHaveLength(0)
})

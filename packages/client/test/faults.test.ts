import { runInNewContext } from 'node:vm'
import {
  createPlantClient,
  type Fetch,
  NoAnswerError,
  type Version,
} from '@plant-store/client'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import {
  answer,
  breakOff,
  busy,
  die,
  hang,
  type Step,
  type StoreRequest,
  scripted,
  unavailable,
} from './scripted-store.ts'

// No random part of a wait is waited for.
beforeEach(() => void vi.spyOn(Math, 'random').mockReturnValue(0))
afterEach(() => void vi.restoreAllMocks())

const plant = { id: 1n, name: 'Ficus' }
const stored = answer(200, '{"id":1,"name":"Ficus"}')
const created = answer(200, '{"name":"Ficus"}', { etag: '"v2"' })
const versioned = answer(200, '{"id":1,"name":"Ficus"}', { etag: '"v2"' })
const changedByOthers = answer(200, '{"id":1,"name":"theirs"}', { etag: '"v3"' })
const inAnotherState = refuse(412, 41201)
const v1 = 'v1' as Version
const v2 = 'v2' as Version
const current = { item: plant, version: v2 }
const replaced = { ...current, created: false }
const removed: Step = response => response.writeHead(204).end()
const missing = refuse(404, 40402)
const forbidden = refuse(403, 40301)

function refused(mayHaveChanged: boolean) {
  return { number: 41201, mayHaveChanged }
}

function refuse(status: number, error: number) {
  return answer(status, { error, message: 'refused' })
}

function html(status: number) {
  return answer(status, '<h1>Bad Gateway</h1>', { 'content-type': 'text/html' })
}

test.each<[string, Step]>([
  ['an answer that breaks off', breakOff],
  ['a limit on requests', refuse(429, 42900)],
  ["a proxy's failure", html(502)],
  ["a proxy's time-out", html(504)],
])('reading, listing, replacing and removing pass over %s', async (_name, fault) => {
  const answers = [stored, answer(200, '[]'), created, removed]
  await using store = await scripted(answers.flatMap(success => [fault, success]))
  const { client, requests } = store

  const results = [
    await client.read(1n),
    await client.list(),
    await client.replace(plant),
    await client.remove(1n),
  ]

  expect(results).toEqual([plant, { items: [] }, replaced, undefined])
  expect(store.methods()).toBe('GET GET GET GET PUT PUT DELETE DELETE')
  expect(requests[4]?.body).toBe(requests[5]?.body)
})

test.each<[why: string, refusal: Step]>([
  ['50301', busy()],
  ['50303', refuse(503, 50303)],
  ['50304', refuse(503, 50304)],
  ['50305', refuse(503, 50305)],
  ['50306', refuse(503, 50306)],
  ['42900', refuse(429, 42900)],
  ["a proxy's 429", html(429)],
])('creating passes over %s, because nothing was changed', async (_, refusal) => {
  await using store = await scripted([refusal, refusal, created])

  expect(await store.client.create(plant)).toEqual(plant)
  expect(store.requests).toHaveLength(3)
})

test.each<[string, Step, object]>([
  ['an answer that breaks off', breakOff, { reason: 'connection-failed' }],
  ['a defect', refuse(500, 50001), { status: 500, number: 50001 }],
  ["a proxy's 503", html(503), { reason: 'unreadable-answer', status: 503 }],
  [
    'a 201 that reads like a refusal',
    answer(201, { error: 40002, message: 'name is required' }),
    {
      message: expect.stringMatching(
        /^the answer with status 201 .* store; it is unknown whether/,
      ),
    },
  ],
  [
    'a 200 that is no plant',
    answer(200, '[]'),
    { reason: 'unreadable-answer', status: 200 },
  ],
  ['a redirection', answer(307, '', { location: '/elsewhere' }), { status: 307 }],
])(
  'creating is never repeated after %s: the failure says that it is unknown',
  async (_name, fault, failure) => {
    await using store = await scripted([fault, created])

    const creation = store.client.create(plant)

    await expect(creation).rejects.toMatchObject({ ...failure, mayHaveChanged: true })
    expect(store.requests).toHaveLength(1)
  },
)

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

test.each<[string, unknown]>([
  ...unconnectedCodes.map((code): [string, unknown] => [code, foreignError(code)]),
  ['Connect', ofDeno('Connect', 'tcp connect error: Connection refused (os error 111)')],
  ['a forbidden port', new Error('bad port')],
])('%s proves that nothing was sent, so creating is repeated', async (_, cause) => {
  const { fetch, error } = await createWithFailingFetch(cause)

  expect(error).toMatchObject({ ...noConnection, mayHaveChanged: false })
  expect(fetch).toHaveBeenCalledTimes(2)
})

test.each<[string, unknown]>([
  ['a reset', Object.assign(new Error('reset'), { code: 'ECONNRESET' })],
  ['SendRequest', ofDeno('SendRequest', 'connection closed before message completed')],
])('after %s, the plant may be there, so creating is not repeated', async (_, cause) => {
  const { fetch, error } = await createWithFailingFetch(cause)

  expect(error).toMatchObject({ ...noConnection, mayHaveChanged: true })
  expect(fetch).toHaveBeenCalledTimes(1)
})

const noConnection = {
  message: expect.stringMatching(/^no answer: the connection failed/),
  cause: { message: 'fetch failed' },
}

async function createWithFailingFetch(cause: unknown) {
  const failure = new TypeError('fetch failed', { cause })
  const fetch = vi.fn(() => Promise.reject(failure))
  const baseUrl = 'http://store'
  const client = createPlantClient({ baseUrl, token: 't', attemptsMax: 2, fetch })
  const error: unknown = await client.create(plant).catch(error => error)
  return { fetch, error }
}

test('a store that does not listen changed nothing', async () => {
  const store = await scripted([], { attemptsMax: 1 })
  await store[Symbol.asyncDispose]()

  const creation = store.client.create(plant)

  const failure = { reason: 'connection-failed', mayHaveChanged: false }
  await expect(creation).rejects.toMatchObject(failure)
})

type ChangeCase = readonly [
  outcome: string,
  script: readonly Step[],
  result: object | undefined,
]

const lostChanges: readonly ChangeCase[] = [
  ['was made by the attempt before', [die, inAnotherState, versioned], current],
  [
    'is refused, because others have changed it',
    [die, inAnotherState, changedByOthers],
    refused(true),
  ],
  [
    'is refused, and the plant cannot be read',
    [die, inAnotherState, forbidden],
    refused(true),
  ],
]

describe.each([
  { options: { ifMatch: v1 }, field: 'if-match', value: '"v1"' },
  { options: { ifNoneMatch: '*' }, field: 'if-none-match', value: '*' },
] as const)(
  'after a lost answer, the replacement with $field',
  ({ options, field, value }) => {
    test.each(lostChanges)('%s', async (_, script, result) => {
      await using store = await scripted(script)

      const replacing = store.client.replace(plant, options)

      expect(await replacing.catch(error => error)).toMatchObject(result ?? {})
      expect(store.methods()).toBe('PUT PUT GET')
      expectCondition(store.requests, field, value)
    })
  },
)

test.each<ChangeCase>([
  ['was made by the attempt before', [die, missing], undefined],
  [
    'was made, because no plant has a version now',
    [die, inAnotherState, missing],
    undefined,
  ],
  [
    'is refused, because others have changed it',
    [die, inAnotherState, changedByOthers],
    refused(true),
  ],
  ['is refused for another reason', [die, forbidden], { number: 40301 }],
])('after a lost answer, the removal %s', async (_, script, result) => {
  await using store = await scripted(script)

  const removing = store.client.remove(1n, { ifMatch: v1 })

  const failure: unknown = await removing.catch(error => error)
  expect(failure).toEqual(result && expect.objectContaining(result))
  expect(store.requests).toHaveLength(script.length)
  expectCondition(store.requests, 'if-match', '"v1"')
})

/** Expects this condition in each change, and no condition in a read. */
function expectCondition(
  requests: readonly StoreRequest[],
  field: string,
  value: string,
) {
  for (const { method, headers } of requests) {
    const condition = method === 'GET' ? undefined : value
    expect(headers[field], `${field} of ${method}`).toBe(condition)
  }
}

test.each(['replace', 'remove'] as const)(
  'a caller who gives up while %s reads the plant back gets the reason',
  async method => {
    const caller = new AbortController()
    const giveUp: Step = () => caller.abort(new Error('given up'))
    await using store = await scripted([die, inAnotherState, giveUp])
    const options = { ifMatch: v1, signal: caller.signal }
    const changes = {
      replace: () => store.client.replace(plant, options),
      remove: () => store.client.remove(1n, options),
    }

    await expect(changes[method]()).rejects.toThrow('given up')
  },
)

test.each([undefined, 'v1', 'v"v1"', '"v1"v', '""', '"a b"'])(
  'an answer with the entity tag %s is unreadable',
  async etag => {
    const headers = etag === undefined ? {} : { etag }
    const tagged = answer(200, '{"id":1,"name":"Ficus"}', headers)
    await using store = await scripted([tagged, tagged])
    const { client } = store

    const reading = client.readVersioned(1n)
    await expect(reading).rejects.toMatchObject({ reason: 'unreadable-answer' })

    const failure = { reason: 'unreadable-answer', mayHaveChanged: true }
    await expect(client.replace(plant)).rejects.toMatchObject(failure)
  },
)

test.each([
  ['nginx', 'W/"v2"'],
  ['Apache', '"v2-gzip"'],
  ['Apache with Brotli', '"v2-br"'],
  ['Caddy', '"v2-zstd"'],
  ['Jetty', '"v2--gzip"'],
  ['Apache before 2.4', '"v2;gzip"'],
  ['two proxies', 'W/"v2-gzip"'],
])('an entity tag that %s has changed names the same version: %s', async (_, etag) => {
  const tagged = answer(200, '{"id":1,"name":"Ficus"}', { etag })
  await using store = await scripted([tagged, removed])

  const reading = await store.client.readVersioned(1n)
  await store.client.remove(1n, { ifMatch: reading.version })

  expect(reading).toEqual(current)
  expect(store.requests[1]?.headers['if-match']).toBe('"v2"')
})

describe('what cannot be sent is not tried again', () => {
  const secret = 'plantstore_secret'

  test.each([
    ['two lines', `${secret}\n`],
    ['a line end of Windows', `${secret}\r\n`],
    ['a blank', `${secret} `],
    ['the scheme', `Bearer ${secret}`],
    ['letters beyond ASCII', `${secret}é`],
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
    onTestFinished(() => void vi.unstubAllGlobals())
    const client = createPlantClient({ baseUrl: 'http://store', token: 't' })

    await expect(client.create(plant)).rejects.toThrow(
      new TypeError('there is no fetch: pass one as an option'),
    )
  })

  test.each([
    'localhost:3000',
    'store.example',
    '',
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
  '%j is no version, and is not sent',
  async ifMatch => {
    await using store = await scripted([])
    const { client } = store

    await expect(client.replace(plant, { ifMatch })).rejects.toThrow(TypeError)
    await expect(client.remove(1n, { ifMatch })).rejects.toThrow(TypeError)
    expect(store.requests).toEqual([])
  },
)

test.each<[string, Step]>([
  ['missing', missing],
  ["a proxy's 404", html(404)],
])(
  'a change without an answer may be made, though the next is %s',
  async (_, refusal) => {
    await using store = await scripted([die, refusal], { attemptsMax: 2 })

    const replacing = store.client.replace(plant)

    await expect(replacing).rejects.toMatchObject({ mayHaveChanged: true })
  },
)

test.each([
  '{"error":40002}',
  '{"error":"40002","message":"no"}',
  '{"message":"no"}',
  'null',
])('a 400 with %s is of no plant store, and changed nothing', async body => {
  await using store = await scripted([answer(400, body)])

  const creation = store.client.create(plant)

  const failure = { reason: 'unreadable-answer', status: 400, mayHaveChanged: false }
  await expect(creation).rejects.toMatchObject(failure)
})

test.each<[string, Step]>([
  ['a refusal', refuse(400, 40002)],
  ['a defect', refuse(500, 50001)],
  ['an answer that is no plant', answer(200, '{"name":5}')],
  ['an answer that is no JSON', html(200)],
  ['the plant of another id', answer(200, '{"id":2,"name":"Ficus"}')],
])('nothing is repeated after %s', async (_name, step) => {
  await using store = await scripted([step, stored])
  await expect(store.client.read(1n)).rejects.toMatchObject({ mayHaveChanged: false })
  expect(store.requests).toHaveLength(1)
})

test('attempts are limited, and the last failure is the one thrown', async () => {
  const script = [busy(), busy(), unavailable, stored]
  await using store = await scripted(script, { attemptsMax: 3 })

  await expect(store.client.read(1n)).rejects.toMatchObject({ number: 50302 })
  expect(store.requests).toHaveLength(3)
})

describe('options', () => {
  const options = { baseUrl: 'http://store', token: 't' }

  test.each([
    { timeoutMs: 0 },
    { timeoutMs: -1 },
    { timeoutMs: Number.NaN },
    { timeoutMs: 2 ** 31 },
    { timeoutMs: '1000' as never },
    { attemptsMax: 0 },
    { attemptsMax: 1.5 },
    { attemptsMax: Number.NaN },
    { attemptsMax: Number.POSITIVE_INFINITY },
    { attemptsMax: '4' as never },
    { token: undefined as never },
    { fetch: 'fetch' as never },
  ])('of %j are refused when the client is made', wrong => {
    expect(() => createPlantClient({ ...options, ...wrong })).toThrow(TypeError)
  })

  test('may say that an attempt has no limit', async () => {
    await using store = await scripted([stored], { timeoutMs: Number.POSITIVE_INFINITY })

    expect(await store.client.read(1n)).toEqual(plant)
  })

  test('may be the longest limit that a timer has', async () => {
    await using store = await scripted([stored], { timeoutMs: 2 ** 31 - 1 })

    expect(await store.client.read(1n)).toEqual(plant)
  })

  test('may have the fetch of a package, which returns an answer of its own', async () => {
    const headers = { get: () => null }
    const fetch = async () => ({ status: 200, headers, text: async () => '[]' })
    const client = createPlantClient({ ...options, fetch })

    expect(await client.list()).toEqual({ items: [] })
  })
})

/** Rejects when the attempt is given up, as a fetch does that gets no answer. */
function silence(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) =>
    signal.addEventListener('abort', () => reject(signal.reason)),
  )
}

test('an attempt that takes too long is given up and repeated', async () => {
  const headers = new Headers()
  const fetch = vi
    .fn<Fetch>()
    .mockImplementationOnce((_, { signal }) => silence(signal))
    .mockImplementationOnce(async (_, { signal }) => {
      return { status: 200, headers, text: () => silence(signal) }
    })
    .mockImplementationOnce(async () => Response.json({ id: 1, name: 'Ficus' }))
  const options = { baseUrl: 'http://store', token: 't', timeoutMs: 50 }
  const client = createPlantClient({ ...options, fetch })

  expect(await client.read(1n)).toEqual(plant)
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

test('a signal gives up before, during and between attempts, with its reason', async () => {
  const reason = new Error('the caller has gone')
  await using store = await scripted([hang, busy({ 'retry-after': '20' })])
  const { client, requests } = store
  const aborted = AbortSignal.abort(reason)
  await expect(client.read(1n, { signal: aborted })).rejects.toBe(reason)
  expect(requests).toHaveLength(0)

  const during = new AbortController()
  const waiting = client.create(plant, { signal: during.signal })
  await expect.poll(() => requests.length).toBe(1)
  during.abort(reason)
  await expect(waiting).rejects.toBe(reason)

  const between = new AbortController()
  const startedMs = performance.now()
  const retrying = client.read(1n, { signal: between.signal })
  await expect.poll(() => requests.length).toBe(2)
  setImmediate(() => between.abort(reason))
  await expect(retrying).rejects.toBe(reason)
  expect(performance.now() - startedMs).toBeLessThan(10_000)
})

/** Returns a function whose token never arrives. */
function fetchTokenForever() {
  const never = new Promise<string>(() => {})
  return vi.fn(() => never)
}

test('a signal gives up while the token is fetched', async () => {
  const token = fetchTokenForever()
  await using store = await scripted([], { token })
  const reason = new Error('the caller has gone')
  const caller = new AbortController()

  const reading = store.client.read(1n, { signal: caller.signal })
  caller.abort(reason)

  await expect(reading).rejects.toBe(reason)
  expect(token).toHaveBeenCalledTimes(1)
  expect(store.requests).toHaveLength(0)
}, 5_000)

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

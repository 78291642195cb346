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
const inAnotherState = refuse(412, 41201)
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

test.each([50301, 50303, 50304, 50305, 50306, 42900])(
  'creating passes over %d, because nothing was changed',
  async number => {
    const refusal = refuse(Math.floor(number / 100), number)
    await using store = await scripted([refusal, refusal, created])

    expect(await store.client.create(plant)).toEqual(plant)
    expect(store.requests).toHaveLength(3)
  },
)

test.each<[string, Step]>([
  ['an answer that breaks off', breakOff],
  ['a defect', refuse(500, 50001)],
  ["a proxy's 503", html(503)],
  ['a 201 that reads like a refusal', answer(201, { error: 40002, message: 'no' })],
  ['a 200 that is no plant', answer(200, '[]')],
  ['a redirection', answer(307, '', { location: '/elsewhere' })],
])('creating is not repeated after %s, which leaves it unknown', async (_name, fault) => {
  await using store = await scripted([fault, created])

  await expect(store.client.create(plant)).rejects.toMatchObject({ mayHaveChanged: true })
  expect(store.requests).toHaveLength(1)
})

test('an unreadable answer is named with its status and its doubt', async () => {
  await using store = await scripted([html(503)])

  await expect(store.client.create(plant)).rejects.toMatchObject({
    reason: 'unreadable-answer',
    status: 503,
    message:
      'the answer with status 503 is not from a plant store; it is unknown whether the change was made',
  })
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

const lost = [die, inAnotherState]

test('a creation that was made by a lost attempt is one', async () => {
  await using store = await scripted([...lost, versioned])

  const replacing = store.client.replace(plant, { ifNoneMatch: '*' })

  expect(await replacing).toEqual({ ...current, created: true })
  const conditions = store.requests.map(({ headers }) => headers['if-none-match'])
  expect(conditions).toEqual(['*', '*', undefined])
})

test('a change that cannot be read back after a lost answer stays refused', async () => {
  await using store = await scripted([...lost, forbidden])

  const replacing = store.client.replace(plant, { ifMatch: v1 })

  const failure = { number: 41201, mayHaveChanged: true }
  await expect(replacing).rejects.toMatchObject(failure)
})

test('a removal that is refused for another reason is not read back', async () => {
  await using store = await scripted([die, forbidden])

  await expect(store.client.remove(1n)).rejects.toMatchObject({ number: 40301 })
  expect(store.requests).toHaveLength(2)
})

test('a caller who gives up while the plant is read back gets the reason', async () => {
  const caller = new AbortController()
  const giveUp: Step = () => caller.abort(new Error('given up'))
  await using store = await scripted([...lost, giveUp])

  const options = { ifMatch: v1, signal: caller.signal }
  await expect(store.client.replace(plant, options)).rejects.toThrow('given up')
})

test.each([undefined, 'v1', 'v"v1"', '"v1"v', '""', '"a b"'])(
  'an answer with the entity tag %s is unreadable',
  async etag => {
    const headers = etag === undefined ? {} : { etag }
    const tagged = answer(200, '{"id":1,"name":"Ficus"}', headers)
    await using store = await scripted([tagged])

    const reading = store.client.readVersioned(1n)
    await expect(reading).rejects.toMatchObject({ reason: 'unreadable-answer' })
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
  await using store = await scripted([tagged])

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
    onTestFinished(() => void vi.unstubAllGlobals())
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
  '%j is no version, and is not sent',
  async ifMatch => {
    await using store = await scripted([])
    const { client } = store

    await expect(client.replace(plant, { ifMatch })).rejects.toThrow(TypeError)
    await expect(client.remove(1n, { ifMatch })).rejects.toThrow(TypeError)
    expect(store.requests).toEqual([])
  },
)

test("a change without an answer may be made, even after a proxy's 404", async () => {
  await using store = await scripted([die, html(404)])

  const replacing = store.client.replace(plant)

  await expect(replacing).rejects.toMatchObject({ mayHaveChanged: true })
})

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

/** Rejects when the attempt is given up, as a fetch does that gets no answer. */
function silence(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) =>
    signal.addEventListener('abort', () => reject(signal.reason)),
  )
}

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

test('a signal gives up before and during an attempt, with its reason', async () => {
  const reason = new Error('the caller has gone')
  await using store = await scripted([hang])
  const { client, requests } = store
  const aborted = AbortSignal.abort(reason)
  await expect(client.read(1n, { signal: aborted })).rejects.toBe(reason)
  expect(requests).toHaveLength(0)

  const during = new AbortController()
  const waiting = client.create(plant, { signal: during.signal })
  await expect.poll(() => requests.length).toBe(1)
  during.abort(reason)
  await expect(waiting).rejects.toBe(reason)
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

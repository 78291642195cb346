import { runInNewContext } from 'node:vm'
import { createPlantClient, NoAnswerError, type Version } from '@plant-store/client'
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
const others = answer(200, '{"id":1,"name":"theirs"}', { etag: '"v3"' })
const inAnotherState = answer(412, {
  error: 41201,
  message: 'plant 1 does not have the expected version: read it again',
})
const [v1, v2] = ['v1', 'v2'] as Version[]
const removed: Step = response => response.writeHead(204).end()
const missing = answer(404, { error: 40402, message: 'there is no plant with id 1' })
const forbidden = answer(403, { error: 40301, message: 'no' })
const html = (status: number) =>
  answer(status, '<h1>Bad Gateway</h1>', { 'content-type': 'text/html' })

test.each<[string, Step]>([
  ['an answer that breaks off', breakOff],
  ['a busy store', busy()],
  ['a store that cannot be used', unavailable],
  ['a limit on requests', answer(429, { error: 42900, message: 'too many requests' })],
  ["a proxy's failure", html(502)],
  ["a proxy's time-out", html(504)],
])('reading, listing, replacing and removing pass over %s', async (_name, fault) => {
  const answers = [stored, answer(200, '[]'), created, removed]
  await using store = await scripted(answers.flatMap(each => [fault, each]))
  const { client, requests } = store
  expect(await client.read(1n)).toEqual(plant)
  expect(await client.list()).toEqual({ items: [] })
  expect(await client.replace(plant)).toEqual({ item: plant, version: v2 })
  await client.remove(1n)
  expect(requests.map(({ method }) => method).join(' ')).toBe(
    'GET GET GET GET PUT PUT DELETE DELETE',
  )
  expect(requests[4]?.body).toBe(requests[5]?.body)
})

test('creating passes over what proves that nothing was changed', async () => {
  const refusals = [50301, 50303, 50304, 50305, 50306].map(error =>
    answer(503, { error, message: 'no' }),
  )
  for (const fault of [
    ...refusals,
    answer(429, { error: 42900, message: 'too many' }),
    html(429),
  ]) {
    await using store = await scripted([fault, fault, created])
    expect(await store.client.create(plant)).toEqual(plant)
    expect(store.requests).toHaveLength(3)
  }
})

test.each<[string, Step, object]>([
  ['a connection that breaks', die, { reason: 'connection-failed' }],
  ['an answer that breaks off', breakOff, { reason: 'connection-failed' }],
  ['silence', hang, { reason: 'timed-out' }],
  ['a store that cannot be used', unavailable, { status: 503, number: 50302 }],
  [
    'a defect',
    answer(500, { error: 50001, message: 'the server failed' }),
    { status: 500, number: 50001 },
  ],
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
  async (_name, fault, said) => {
    // Only silence is waited for.
    const options = fault === hang ? { timeoutMs: 200 } : {}
    await using store = await scripted([fault, created], options)
    await expect(store.client.create(plant)).rejects.toMatchObject({
      ...said,
      mayHaveChanged: true,
    })
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

test.each<[string, unknown, boolean]>([
  ...unconnectedCodes.map((code): [string, unknown, boolean] => [
    code,
    // It is from another realm, so it is no instance of Error here.
    runInNewContext("Object.assign(new Error('refused'), { code })", { code }),
    false,
  ]),
  [
    'Connect',
    ofDeno('Connect', 'tcp connect error: Connection refused (os error 111)'),
    false,
  ],
  ['a port that is never asked', new Error('bad port'), false],
  ['a reset', Object.assign(new Error('reset'), { code: 'ECONNRESET' }), true],
  [
    'SendRequest',
    ofDeno('SendRequest', 'connection closed before message completed'),
    true,
  ],
])('%s tells whether the store was ever asked', async (_, cause, mayHaveChanged) => {
  const fetch = vi.fn(() => Promise.reject(new TypeError('fetch failed', { cause })))
  const client = createPlantClient({
    baseUrl: 'http://store',
    token: 't',
    attemptsMax: 2,
    fetch,
  })
  await expect(client.create(plant)).rejects.toMatchObject({
    mayHaveChanged,
    message: expect.stringMatching(/^no answer: the connection failed/),
    cause: { message: 'fetch failed' },
  })
  expect(fetch).toHaveBeenCalledTimes(mayHaveChanged ? 1 : 2)
})

test('a store that does not listen changed nothing', async () => {
  const gone = await scripted([], { attemptsMax: 1 })
  await gone[Symbol.asyncDispose]()
  const nothing = { reason: 'connection-failed', mayHaveChanged: false }
  await expect(gone.client.create(plant)).rejects.toMatchObject(nothing)
})

const refused = (mayHaveChanged: boolean) => ({ number: 41201, mayHaveChanged })
const replaced = { item: plant, version: v2 }

/** The requests of a change of one version, and its outcome. */
test.each<[string, script: readonly Step[], sent: string, outcome: object]>([
  ['is made', [created], 'PUT', replaced],
  ['is refused', [inAnotherState], 'PUT', refused(false)],
  [
    'is refused after a store that was busy',
    [busy(), inAnotherState],
    'PUT PUT',
    refused(false),
  ],
  [
    'was made by the attempt before',
    [die, inAnotherState, versioned],
    'PUT PUT GET',
    replaced,
  ],
  [
    'is refused: others have changed the plant',
    [die, inAnotherState, others],
    'PUT PUT GET',
    refused(true),
  ],
  [
    'is refused: others have removed the plant',
    [die, inAnotherState, missing],
    'PUT PUT GET',
    refused(true),
  ],
  [
    'is refused, and cannot be read',
    [die, inAnotherState, forbidden],
    'PUT PUT GET',
    refused(true),
  ],
  [
    'was made, read from a busy store',
    [die, inAnotherState, busy(), versioned],
    'PUT PUT GET GET',
    replaced,
  ],
  ['is made', [removed], 'DELETE', {}],
  ['is refused', [inAnotherState], 'DELETE', refused(false)],
  ['finds none', [missing], 'DELETE', { number: 40402, mayHaveChanged: false }],
  ['was made: there is none', [die, missing], 'DELETE DELETE', {}],
  [
    'was made: there is none to have a version',
    [die, inAnotherState, missing],
    'DELETE DELETE GET',
    {},
  ],
  [
    'is refused: others have changed it',
    [die, inAnotherState, others],
    'DELETE DELETE GET',
    refused(true),
  ],
  ['is refused for another reason', [die, forbidden], 'DELETE DELETE', { number: 40301 }],
])('a change of one version %s: %#', async (_, script, sent, outcome) => {
  const conditions = [
    { ifMatch: v1 },
    ...(sent.startsWith('PUT') ? [{ ifNoneMatch: '*' } as const] : []),
  ]
  for (const condition of conditions) {
    await using store = await scripted(script)
    const { client, requests } = store
    const change = sent.startsWith('PUT')
      ? client.replace(plant, condition)
      : client.remove(1n, condition)
    const result = await change.catch(error => error)
    expect(result ?? {}).toMatchObject(outcome)
    expect(result === undefined).toBe(Object.keys(outcome).length === 0)
    expect(requests.map(({ method }) => method).join(' ')).toBe(sent)
    const [field, value] =
      'ifMatch' in condition ? ['if-match', '"v1"'] : ['if-none-match', '*']
    for (const { method, headers } of requests) {
      expect(headers[field]).toBe(method === 'GET' ? undefined : value)
    }
  }
})

test('a caller who gives up while the plant is read back gets the reason', async () => {
  const caller = new AbortController()
  const giveUp: Step = () => caller.abort(new Error('given up'))
  for (const call of ['replace', 'remove'] as const) {
    await using store = await scripted([die, inAnotherState, giveUp])
    const options = { ifMatch: v1, signal: caller.signal }
    const calling =
      call === 'replace'
        ? store.client.replace(plant, options)
        : store.client.remove(1n, options)
    await expect(calling, call).rejects.toThrow('given up')
  }
})

test('an answer without the entity tag of a version is unreadable', async () => {
  for (const etag of [undefined, 'v1', 'v"v1"', '"v1"v', '""', '"a b"']) {
    const tagged = answer(
      200,
      '{"id":1,"name":"Ficus"}',
      etag === undefined ? {} : { etag },
    )
    await using store = await scripted([tagged, tagged])
    const unreadable = { reason: 'unreadable-answer' }
    await expect(store.client.readVersioned(1n), `${etag}`).rejects.toMatchObject(
      unreadable,
    )
    await expect(store.client.replace(plant), `${etag}`).rejects.toMatchObject({
      ...unreadable,
      mayHaveChanged: true,
    })
  }
})

test.each([
  ['nginx', 'W/"v2"'],
  ['Apache', '"v2-gzip"'],
  ['Apache with Brotli', '"v2-br"'],
  ['Caddy', '"v2-zstd"'],
  ['Jetty', '"v2--gzip"'],
  ['Apache before 2.4', '"v2;gzip"'],
  ['two proxies', 'W/"v2-gzip"'],
])('an entity tag that %s has changed names the same version: %s', async (_, etag) => {
  await using store = await scripted([
    answer(200, '{"id":1,"name":"Ficus"}', { etag }),
    removed,
  ])

  const { item, version } = await store.client.readVersioned(1n)
  await store.client.remove(1n, { ifMatch: version })

  expect({ item, version }).toEqual({ item: plant, version: v2 })
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
    ['no text', undefined as unknown as string],
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
    '127.0.0.1:3000',
    'store.example',
    '/plants',
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

test('what is no version is not sent', async () => {
  await using store = await scripted([])
  for (const ifMatch of ['', '"', 'a", "b', 'a\r\nb: c'] as Version[]) {
    await expect(store.client.replace(plant, { ifMatch }), ifMatch).rejects.toThrow(
      TypeError,
    )
    await expect(store.client.remove(1n, { ifMatch }), ifMatch).rejects.toThrow(TypeError)
  }
  expect(store.requests).toEqual([])
})

test('a refusal after an unanswered attempt says that it may be made', async () => {
  for (const step of [busy(), missing, html(404)]) {
    await using store = await scripted([die, step], { attemptsMax: 2 })
    await expect(store.client.replace(plant)).rejects.toMatchObject({
      mayHaveChanged: true,
    })
  }
})

test('a 400 that is of no plant store changed nothing', async () => {
  const unreadable = { reason: 'unreadable-answer', status: 400, mayHaveChanged: false }
  for (const body of [
    { error: 40002 },
    { error: '40002', message: 'no' },
    { message: 'no' },
    null,
  ]) {
    await using store = await scripted([answer(400, body)])
    await expect(store.client.create(plant)).rejects.toMatchObject(unreadable)
  }
})

test.each<[string, Step]>([
  ['a refusal', answer(400, { error: 40002, message: 'name is required' })],
  ['a defect', answer(500, { error: 50001, message: 'the server failed' })],
  ['an answer that is no plant', answer(200, '{"name":5}')],
  ['an answer that is no JSON', html(200)],
  ['the plant of another id', answer(200, '{"id":2,"name":"Ficus"}')],
])('nothing is repeated after %s', async (_name, step) => {
  await using store = await scripted([step, stored])
  await expect(store.client.read(1n)).rejects.toMatchObject({ mayHaveChanged: false })
  expect(store.requests).toHaveLength(1)
})

test('attempts are limited, and the last failure is the one thrown', async () => {
  await using store = await scripted([busy(), busy(), unavailable, stored], {
    attemptsMax: 3,
  })
  await expect(store.client.read(1n)).rejects.toMatchObject({ number: 50302 })
  expect(store.requests).toHaveLength(3)
})

test('an attempt that takes too long is given up and repeated', async () => {
  const inTheBody: Step = response =>
    response.writeHead(200, { 'content-type': 'application/json' }).write('{"id":')
  await using store = await scripted([hang, inTheBody, stored], { timeoutMs: 100 })
  expect(await store.client.read(1n)).toEqual(plant)
  await using silent = await scripted([hang, hang], { timeoutMs: 50, attemptsMax: 2 })
  const error = await silent.client.read(1n).catch(error => error)
  expect(error).toBeInstanceOf(NoAnswerError)
  expect(error).toMatchObject({
    reason: 'timed-out',
    mayHaveChanged: false,
    message: 'no answer within 50 ms',
    cause: { name: 'AbortError' },
  })
})

test('a signal gives up before, during and between attempts, with its reason', async () => {
  const reason = new Error('the caller has gone')
  await using store = await scripted([hang, busy({ 'retry-after': '20' })])
  const { client, requests } = store
  await expect(client.read(1n, { signal: AbortSignal.abort(reason) })).rejects.toBe(
    reason,
  )
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

test('a signal and the time-out hold while the token is fetched too', async () => {
  await using store = await scripted([])
  const never = new Promise<string>(() => {})
  const asked: string[] = []
  const token = () => {
    asked.push('token')
    return never
  }
  const client = createPlantClient({ baseUrl: store.baseUrl, token })
  const reason = new Error('the caller has gone')
  const leaving = new AbortController()
  const reading = client.read(1n, { signal: leaving.signal })
  leaving.abort(reason)
  await expect(reading).rejects.toBe(reason)
  expect(asked).toHaveLength(1)

  const hurried = createPlantClient({
    baseUrl: store.baseUrl,
    token,
    timeoutMs: 50,
    attemptsMax: 2,
  })
  await expect(hurried.create(plant)).rejects.toMatchObject({
    reason: 'timed-out',
    message: 'no access token within 50 ms',
    mayHaveChanged: false,
  })
  expect(asked).toHaveLength(3)
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

import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { AccessError, type Credentials, type Gate, type Scope } from '@plant-store/access'
import { createJwtGate, type JwtGateOptions } from '@plant-store/jwt'
import { jwtAlgorithms } from '@plant-store/jwt/settings'
import { base64url } from 'jose'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  audience,
  makeKey,
  provider,
  type SigningKey,
  sign,
  timeAfter,
} from './provider.ts'

let key: SigningKey
beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['performance', 'Date'] })
  // The process is older than every limit, as it is most of the time.
  vi.advanceTimersByTime(100_000_000)
  key = await makeKey('first')
  provider.keys = [key]
  provider.requestCount = 0
  provider.answer = undefined
  await provider.start(0)
})
afterEach(provider.stop)

const cooldownMs = 5000
const refreshAfterMs = 300_000
const opaque: Gate = () => {
  throw new AccessError('invalid-token', 'not for the provider')
}
const createGate = (more: Partial<JwtGateOptions> = {}) =>
  createJwtGate({
    issuer: provider.issuer,
    audience: ['x', audience],
    jwksUrl: provider.jwksUrl,
    algorithms: jwtAlgorithms,
    clockSkewMs: 30_000,
    otherwise: opaque,
    ...more,
  })

const credentials = (token: string | undefined): Credentials => ({ token, headers: {} })

/** Returns the holder, or the refusal. */
async function admit(gate: Gate, token?: string, scope: Scope = 'plants:write') {
  try {
    return await gate(credentials(token), scope)
  } catch (error) {
    assert(error instanceof AccessError, `the gate failed with ${error}`)
    return error
  }
}

/** Returns the name of the holder, or the code of the refusal. */
async function ask(gate: Gate, token?: string, scope?: Scope) {
  const admission = await admit(gate, token, scope)
  return admission instanceof AccessError ? admission.code : admission.name
}

/** Returns a token that the gate remembers. */
async function signRemembered(gate: Gate, claims: object) {
  const token = await sign(key, claims)
  // While the gate fetches its first keys, it remembers no token.
  await ask(gate, token)
  await ask(gate, token)
  return token
}

const encode = (value: object) => base64url.encode(JSON.stringify(value))

/** Returns a token of our claims with another header, signed otherwise. */
async function forge(alg: string, signatureOf: (content: string) => string) {
  const [, payload] = (await sign(key)).split('.')
  const content = `${encode({ alg, kid: key.kid })}.${payload}`
  return `${content}.${signatureOf(content)}`
}

describe('a token', () => {
  test('signed with another algorithm of the list is admitted', async () => {
    key = await makeKey('key', 'EdDSA')
    provider.keys = [key]

    expect(await ask(createGate(), await sign(key))).toBe('flora')
  })

  test.each<[string, () => object, Scope, string | undefined]>([
    ['that expired', () => ({ exp: timeAfter(-31_000) }), 'plants:read', 'flora'],
    ['without the scope', () => ({}), 'metrics:read', 'flora'],
    ['of a numbered subject', () => ({ aud: 'x', sub: 7 }), 'plants:read', undefined],
  ])('%s is refused with its subject for the log', async (_, claimsOf, scope, holder) => {
    const gate = createGate()
    const claims = claimsOf()

    const refusal = await admit(gate, await sign(key, claims), scope)
    expect(refusal).toMatchObject({ name: 'AccessError', holder })

    // Anybody can write a subject.
    const forgery = await sign(await makeKey('first'), claims)
    const anonymous = { code: 'invalid-token', holder: undefined }
    expect(await admit(gate, forgery, scope)).toMatchObject(anonymous)
  })

  test.each<[string, object]>([
    ['the scope among others', { scope: 'a plants:read' }],
    ['permissions', { permissions: ['plants:read'] }],
    ['permissions that are null', { permissions: null, scope: 'plants:read' }],
  ])('with %s is admitted for it, again once remembered', async (_, claims) => {
    const gate = createGate()
    const token = await signRemembered(gate, claims)

    expect(await ask(gate, token, 'plants:read')).toBe('flora')
  })

  test.each<[string, () => Promise<string>]>([
    ['without a signature', () => forge('none', () => '')],
    [
      'signed with the public key as a secret',
      () =>
        forge('HS256', content =>
          createHmac('sha256', JSON.stringify(key.jwk))
            .update(content)
            .digest('base64url'),
        ),
    ],
    [
      'of an algorithm that is not on the list',
      async () => sign(await makeKey('first', 'ES384')),
    ],
  ])('%s is refused by jose, and so by us', async (_, make) => {
    const gate = createGate({ algorithms: ['ES256'] })

    const refusal = { code: 'invalid-token', holder: undefined }
    expect(await admit(gate, await make())).toMatchObject(refusal)
  })
})

test('a token is read if it has up to 8,192 bytes', async () => {
  const token = await sign(key)
  const refusalAt = (bytes: number) => admit(createGate(), token.padEnd(bytes, 'x'))

  const read = await refusalAt(8192)
  const unread = await refusalAt(8193)

  expect(read).toMatchObject({ message: expect.stringContaining('the signature') })
  expect(unread).toMatchObject({ message: 'the access token is longer than 8192 bytes' })
})

test('the other gate gets what is no JWT of this issuer, and nothing else', async () => {
  const otherwise = vi.fn<Gate>(() => ({ name: 'other' }))
  const gate = createGate({ otherwise })
  const foreign = await sign(key, { iss: 'https://other.example' })

  expect(await ask(gate, undefined)).toBe('other')
  expect(await ask(gate, foreign)).toBe('other')
  expect(await ask(gate, await sign(key))).toBe('flora')
  expect(await ask(gate, await sign(key, { exp: 1 }))).toBe('invalid-token')

  const tokens = otherwise.mock.calls.map(([credentials]) => credentials)
  expect(tokens).toEqual([credentials(undefined), credentials(foreign)])
})

describe('a token that several keys fit', () => {
  const changed = (key: SigningKey, members: object): SigningKey => ({
    ...key,
    jwk: { ...key.jwk, ...members },
  })
  const broken = { x: undefined }

  test.each<[string, () => Promise<readonly SigningKey[]>]>([
    ['two keys with one kid, its own last', async () => [await makeKey('first'), key]],
    ['a broken key before its own', async () => [changed(key, broken), key]],
  ])('is admitted with %s', async (_, keysOf) => {
    provider.keys = await keysOf()

    expect(await ask(createGate(), await sign(key))).toBe('flora')
  })

  test('cannot be checked if all of them are broken', async () => {
    provider.keys = [changed(key, broken), changed(key, broken)]

    expect(await ask(createGate(), await sign(key))).toBe('access-unavailable')
  })
})

describe('a refusal says', () => {
  const invalid = 'the access token is not valid: '
  const lacks = 'the access token lacks the scope plants:read: '
  const standard = Buffer.from('{"alg":"ES256","typ":"?>?>"}').toString('base64')

  test.each<[message: string, claims: object]>([
    [
      `${invalid}its claim "iss" is "https://identity.example", which is not exactly the issuer that this store trusts`,
      { iss: 'https://identity.example' },
    ],
    [`${invalid}it lacks the claim "iss"`, { iss: undefined }],
    [
      `${invalid}its claim "aud" is ["a","b"], which names no audience of this store`,
      { aud: ['a', 'b'] },
    ],
    [`${invalid}missing required "aud" claim`, { aud: undefined }],
    [`${invalid}its claim "nbf" is in the future`, { nbf: 2 ** 32 }],
    [`${invalid}missing required "exp" claim`, { exp: undefined }],
    [`${invalid}missing required "sub" claim`, { sub: undefined }],
    [`${invalid}"sub" claim must be a non-empty string`, { sub: 7 }],
    [`${invalid}"sub" claim must be a non-empty string`, { sub: '' }],
    [
      `${lacks}its claim "scope" must be a text, with a space between two scopes (RFC 8693)`,
      { scope: ['plants:read'] },
    ],
    [`${lacks}its claim "scope" has other words`, { scope: 'xplants:read' }],
    [
      `${lacks}scopes are read from its claim "permissions" or "scope", and it has none: "scp" is not read`,
      { scope: undefined, scp: ['plants:read'] },
    ],
    [
      `${lacks}its scopes are those of the claim "permissions"`,
      { permissions: [], scope: 'plants:read' },
    ],
    [
      `${lacks}its claim "permissions" must be a list of texts`,
      { permissions: 'plants:read' },
    ],
  ])('%s', async (message, claims) => {
    const gate = createGate()
    const token = await signRemembered(gate, claims)

    expect(await admit(gate, token, 'plants:read')).toMatchObject({
      code: message.startsWith(lacks) ? 'insufficient-scope' : 'invalid-token',
      message,
    })
  })

  test.each<[words: string, makeToken: () => string | Promise<string>]>([
    [
      'no key of the identity provider fits its header',
      async () => sign(await makeKey('unknown')),
    ],
    ['an encrypted JWT', () => `${encode({ alg: 'RSA-OAEP', enc: 'A256GCM' })}.a.b.c.d`],
    ['base64url (RFC 7515) has no "=", "+" and "/"', async () => `${await sign(key)}=`],
    ['base64url (RFC 7515) has no "=", "+" and "/"', () => `${standard}.a.b`],
    ['its claims cannot be read', () => `${encode({ alg: 'ES256' })}.a.b`],
    ['not for the provider', () => 'a.b.c'],
  ])('%s', async (words, makeToken) => {
    const message = expect.stringContaining(words)
    const refusal = { code: 'invalid-token', message }
    expect(await admit(createGate(), await makeToken())).toMatchObject(refusal)
  })

  test('what the other gate says if that one knows the holder', async () => {
    const foreign = await sign(key, { iss: 'https://other.example' })
    const refusal = new AccessError('invalid-token', 'expired', undefined, 'flora')
    const otherwise: Gate = async () => Promise.reject(refusal)

    expect(await admit(createGate({ otherwise }), foreign)).toBe(refusal)
  })
})

describe('a token that was checked', () => {
  const isRemembered = (gate: Gate, token: string) => {
    const admission = gate(credentials(token), 'plants:write')
    if (!(admission instanceof Promise)) {
      return true
    }
    admission.catch(() => {})
    return false
  }

  test('is remembered up to the moment it expires', async () => {
    const gate = createGate()
    const exp = timeAfter(10_000)
    const token = await signRemembered(gate, { exp })

    vi.setSystemTime(exp * 1000 - 1)
    expect(isRemembered(gate, token), 'before it expires').toBe(true)

    vi.setSystemTime(exp * 1000)
    expect(isRemembered(gate, token), 'once it has expired').toBe(false)

    // The token is checked again, because its expiry may be within the skew.
    expect(await ask(gate, token)).toBe('flora')
  })

  test('is checked again with new keys, and refused if its key is gone', async () => {
    const gate = createGate()
    const exp = timeAfter(2 * refreshAfterMs)
    const token = await signRemembered(gate, { exp })
    const second = await makeKey('second')
    provider.keys = [second]

    vi.advanceTimersByTime(refreshAfterMs - 1)
    expect(isRemembered(gate, token), 'before the keys are fetched').toBe(true)
    expect(provider.requestCount).toBe(1)

    vi.advanceTimersByTime(1)
    // No token waits for the new keys.
    expect(isRemembered(gate, token), 'while the keys are fetched').toBe(true)
    await expect.poll(() => isRemembered(gate, token)).toBe(false)
    expect(await ask(gate, token)).toBe('invalid-token')
    expect(await ask(gate, await sign(second))).toBe('flora')
    expect(provider.requestCount).toBe(2)
  })
})

describe('a new key of the provider', () => {
  test('is fetched once, and unknown keys cause one fetch a cool-down', async () => {
    const gate = createGate()
    await ask(gate, await sign(key))
    const second = await makeKey('second')
    const signMany = async () => {
      const ids = Array.from({ length: 50 }, (_, n) => `${n}`)
      return Promise.all(ids.map(jti => sign(second, { jti })))
    }
    for (const [round, outcome] of [
      'invalid-token',
      'invalid-token',
      'flora',
    ].entries()) {
      if (outcome === 'flora') {
        provider.keys = [key, second]
      }
      vi.advanceTimersByTime(cooldownMs)
      const tokens = await signMany()
      const outcomes = await Promise.all(tokens.map(token => ask(gate, token)))

      expect([...new Set(outcomes)], `tokens in round ${round}`).toEqual([outcome])
      expect(provider.requestCount, `fetches after round ${round}`).toBe(2 + round)
    }
  })

  test('is known after the clock was set back', async () => {
    const gate = createGate()
    await ask(gate, await sign(key))
    const second = await makeKey('second')
    provider.keys = [second]
    vi.setSystemTime(Date.now() - 86_400_000)
    const token = await sign(second)
    await expect.poll(() => ask(gate, token)).toBe('flora')
  })
})

describe('a provider that', () => {
  /** The messages of failures. An `undefined` says that the provider works again. */
  const failures: (string | undefined)[] = []
  beforeEach(() => void failures.splice(0))
  const onFailureChange = (error?: Error) => void failures.push(error?.message)

  const keys = (count: number) => JSON.stringify({ keys: Array(count).fill(key.jwk) })
  test.each<[string, (response: ServerResponse) => void, RegExp]>([
    [
      'sends its header section and hangs',
      response => response.writeHead(200).write('{'),
      /timeout/i,
    ],
    [
      'sends elsewhere',
      response => response.writeHead(302, { location: provider.jwksUrl }).end(),
      /^it answered 302$/,
    ],
    ['sends null', response => response.end('null'), /JSON Web Key Set/],
    ['has no keys', response => response.end(keys(0)), /^it has no keys$/],
    ['has many keys', response => response.end(keys(101)), /^it has more than 100 keys$/],
    [
      'sends megabytes',
      response => response.end(' '.repeat(256 * 1024 + 1)),
      /^its answer is longer than 262144 bytes$/,
    ],
  ])('%s gets nobody in until it works again', async (_, answer, reason) => {
    provider.answer = (_request, response) => answer(response)
    // The test of a provider that hangs need not wait for the whole timeout.
    if (reason.test('timeout')) {
      shortenNextTimeout()
    }
    const gate = createGate({ onFailureChange, otherwise: () => ({ name: 'other' }) })
    const token = await sign(key)

    expect(await ask(gate, token)).toBe('access-unavailable')
    expect(await ask(gate, 'opaque')).toBe('other')
    expect(failures).toEqual([expect.stringMatching(reason)])

    // The keys are not fetched again for every request.
    const { requestCount } = provider
    expect(await ask(gate, token)).toBe('access-unavailable')
    expect(provider.requestCount).toBe(requestCount)

    provider.answer = undefined
    vi.advanceTimersByTime(cooldownMs)
    expect(await ask(gate, token)).toBe('flora')
    expect(failures).toEqual([expect.any(String), undefined])
  })

  test.each([
    ['a broken key', undefined],
    ['a key of 512 bits', base64url.encode(Buffer.alloc(64, 255))],
  ])('has %s gets nobody in by it', async (_, modulus) => {
    const rsa = await makeKey('rsa', 'RS256')
    provider.keys = [key, { ...rsa, jwk: { ...rsa.jwk, n: modulus } }]
    const gate = createGate({ onFailureChange })
    const token = await sign(rsa)

    expect(await ask(gate, token), 'the first time').toBe('access-unavailable')
    expect(await ask(gate, token), 'the second time').toBe('access-unavailable')
    expect(failures).toEqual([expect.any(String)])
    expect(await ask(gate, await sign(key)), 'by its other key').toBe('flora')
  })

  test('is down later leaves its keys good for an hour', async () => {
    const gate = createGate({ onFailureChange })
    const token = await signRemembered(gate, { exp: timeAfter(7_200_000) })
    const unknown = await sign(await makeKey('second'))
    const forgery = await sign(await makeKey('first'))

    await provider.stop()
    vi.advanceTimersByTime(cooldownMs)
    expect(await ask(gate, unknown)).toBe('access-unavailable')
    expect(await ask(gate, forgery)).toBe('invalid-token')

    vi.advanceTimersByTime(3_599_000 - cooldownMs)
    expect(await ask(gate, token), 'the same token').toBe('flora')
    expect(await ask(gate, await sign(key)), 'a new token').toBe('flora')

    vi.advanceTimersByTime(1000)
    expect(await ask(gate, token)).toBe('access-unavailable')

    await provider.start()
    vi.advanceTimersByTime(cooldownMs)
    expect(await ask(gate, token)).toBe('flora')
    expect(failures).toEqual([expect.any(String), undefined])
  })

  test('hangs does not delay a stop', async () => {
    provider.answer = () => {}
    const stop = new AbortController()
    const gate = createGate({ signal: stop.signal })

    const answer = ask(gate, await sign(key))
    stop.abort()

    expect(await answer).toBe('access-unavailable')
  })
})

function shortenNextTimeout() {
  const { timeout } = AbortSignal
  const shorten = (ms: number) => timeout.call(AbortSignal, ms / 10)
  vi.spyOn(AbortSignal, 'timeout').mockImplementationOnce(shorten)
}

test('keys of just the size allowed are read, and so are long header fields', async () => {
  const keys = JSON.stringify({ keys: [key.jwk] })
  provider.answer = (_, response) =>
    response.setHeader('set-cookie', 'x'.repeat(20_000)).end(keys.padEnd(256 * 1024))

  expect(await ask(createGate(), await sign(key))).toBe('flora')
})

test.each<[string, object, string]>([
  ['several operations', { key_ops: ['sign', 'verify', 'wrapKey'] }, 'flora'],
  ['members that are null', { alg: null, use: null, key_ops: null }, 'flora'],
  ['operations without verify', { key_ops: ['sign'] }, 'invalid-token'],
])('a token of a key with %s gets its answer', async (_, members, outcome) => {
  provider.keys = [{ ...key, jwk: { ...key.jwk, ...members } }]

  expect(await ask(createGate(), await sign(key))).toBe(outcome)
})

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
afterEach(async () => {
  vi.useRealTimers()
  vi.restoreAllMocks()
  await provider.stop()
})

const cooldownMs = 5000
const refreshAfterMs = 300_000
const refuse: Gate = ({ token }) => {
  const code = token === undefined ? 'no-token' : 'invalid-token'
  throw new AccessError(code, 'not for the provider')
}
const createGate = (more: Partial<JwtGateOptions> = {}) =>
  createJwtGate({
    issuer: provider.issuer,
    audience,
    jwksUrl: provider.jwksUrl,
    algorithms: jwtAlgorithms,
    clockSkewMs: 30_000,
    otherwise: refuse,
    ...more,
  })

const credentials = (token: string | undefined): Credentials => ({
  token,
  headers: {},
})

/** Returns the holder, or the refusal. */
async function admit(
  gate: Gate,
  token: string | undefined,
  scope: Scope = 'plants:write',
) {
  try {
    return await gate(credentials(token), scope)
  } catch (error) {
    assert(error instanceof AccessError, `the gate failed with ${error}`)
    return error
  }
}

/** Returns the name of the holder, or the code of the refusal. */
async function ask(gate: Gate, token: string | undefined, scope: Scope = 'plants:write') {
  const admission = await admit(gate, token, scope)
  return admission instanceof AccessError ? admission.code : admission.name
}

/** Expects that the gate refuses the token with such a code and message. */
async function expectRefusal(gate: Gate, token: string, refusal: object) {
  expect(await admit(gate, token, 'plants:read')).toMatchObject(refusal)
}

/** Returns a token that the gate remembers. */
async function signRemembered(gate: Gate, claims: object) {
  const token = await sign(key, claims)
  // While the gate fetches its first keys, it remembers no token.
  await ask(gate, token)
  await ask(gate, token)
  return token
}

function encode(value: object) {
  return base64url.encode(JSON.stringify(value))
}

describe('a token', () => {
  test.each(jwtAlgorithms)('signed with %s is admitted', async algorithm => {
    key = await makeKey('key', algorithm)
    provider.keys = [key]

    expect(await ask(createGate(), await sign(key))).toBe('flora')
  })

  test.each([
    ['that expired within the skew', -29_000, 'flora'],
    ['that expired before', -31_000, 'invalid-token'],
  ])('%s gets %s', async (_, ms, outcome) => {
    const token = await sign(key, { exp: timeAfter(ms) })

    expect(await ask(createGate(), token)).toBe(outcome)
  })

  test.each<[string, object, RegExp?]>([
    ['without exp', { exp: undefined }],
    [
      'without sub',
      { sub: undefined },
      /^the access token is not valid: missing required "sub" claim$/,
    ],
    ['whose sub is empty', { sub: '' }],
    [
      'whose sub is a number',
      { sub: 7 },
      /^the access token is not valid: "sub" claim must be a non-empty/,
    ],
    ['for no audience', { aud: undefined }],
    [
      'that is too long',
      { padding: 'x'.repeat(8192) },
      /^the access token is longer than 8192 bytes$/,
    ],
  ])('%s is refused', async (_, claims, reason = /./) => {
    const token = await sign(key, claims)

    const message = expect.stringMatching(reason)
    await expectRefusal(createGate(), token, { code: 'invalid-token', message })
  })

  test.each<[string, () => object, Scope, string | undefined]>([
    ['that expired', () => ({ exp: timeAfter(-31_000) }), 'plants:read', 'flora'],
    ['without the scope', () => ({}), 'metrics:read', 'flora'],
    [
      'for another audience, whose sub is a number',
      () => ({ aud: 'x', sub: 7 }),
      'plants:read',
      undefined,
    ],
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

  test('for several audiences is admitted when one of ours is among them', async () => {
    const token = await sign(key, { aud: ['https://other.example', audience] })

    expect(await ask(createGate({ audience: ['x', audience] }), token)).toBe('flora')
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
    [
      'that was changed',
      async () => {
        const [header, , signature] = (await sign(key)).split('.')
        const [, payload] = (await sign(key, { sub: 'root' })).split('.')
        return `${header}.${payload}.${signature}`
      },
    ],
    [
      'without a signature',
      async () => {
        const [, payload] = (await sign(key)).split('.')
        return `${encode({ alg: 'none', kid: key.kid })}.${payload}.`
      },
    ],
    [
      'signed with the public key as a secret',
      async () => {
        const [, payload] = (await sign(key)).split('.')
        const header = encode({ alg: 'HS256', kid: key.kid })
        const hmac = createHmac('sha256', JSON.stringify(key.jwk))
        const signature = hmac.update(`${header}.${payload}`).digest('base64url')
        return `${header}.${payload}.${signature}`
      },
    ],
    [
      'that brings its own key',
      async () => {
        const own = await makeKey('own')
        const header = { jwk: own.jwk, jku: provider.jwksUrl, kid: undefined }
        return sign(own, {}, header)
      },
    ],
  ])('%s is refused by jose, and so by us', async (_, make) => {
    const refusal = { code: 'invalid-token', holder: undefined }

    await expectRefusal(createGate(), await make(), refusal)
  })

  test('of an algorithm that is not on the list is refused', async () => {
    const gate = createGate({ algorithms: ['RS256'] })

    expect(await ask(gate, await sign(key))).toBe('invalid-token')
  })

  test('that is a megabyte of dots is left to the other gate', async () => {
    const gate = createGate({ otherwise: () => ({ name: 'other' }) })

    expect(await ask(gate, '.'.repeat(2 ** 20))).toBe('other')
  })

  test('that has just the length allowed is admitted', async () => {
    const bytesMax = 8192
    const { length } = await sign(key, { padding: '' })
    // Base64 writes three bytes in four.
    const fitting = Math.floor(((bytesMax - length) * 3) / 4)
    const longest = await sign(key, { padding: 'x'.repeat(fitting) })
    expect(longest.length).toBeGreaterThan(bytesMax - 3)

    expect(await ask(createGate(), longest)).toBe('flora')
  })
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
  const copyOf = (key: SigningKey): SigningKey => ({ ...key, jwk: { ...key.jwk } })
  const brokenCopyOf = (key: SigningKey): SigningKey => ({
    ...key,
    jwk: { ...key.jwk, x: undefined },
  })
  const withoutKid = (key: SigningKey): SigningKey => ({
    ...key,
    jwk: { ...key.jwk, kid: undefined },
  })

  test.each<[string, () => Promise<readonly SigningKey[]>]>([
    ['one key that the set has twice', async () => [key, copyOf(key)]],
    ['two keys with one kid, its own last', async () => [await makeKey('first'), key]],
    ['a broken key before its own', async () => [brokenCopyOf(key), key]],
  ])('is admitted with %s', async (_, keysOf) => {
    provider.keys = await keysOf()

    expect(await ask(createGate(), await sign(key))).toBe('flora')
  })

  test('is admitted if neither it nor the keys have a kid', async () => {
    const other = await makeKey('other')
    provider.keys = [other, key].map(withoutKid)
    const token = await sign(key, {}, { kid: undefined })

    expect(await ask(createGate(), token)).toBe('flora')
  })

  test('cannot be checked if all of them are broken', async () => {
    provider.keys = [brokenCopyOf(key), brokenCopyOf(key)]

    expect(await ask(createGate(), await sign(key))).toBe('access-unavailable')
  })
})

describe('a refusal says', () => {
  test.each<[string, object, string]>([
    [
      'that the issuer differs',
      { iss: 'https://identity.example' },
      'its claim "iss" is "https://identity.example", which is not exactly the issuer',
    ],
    ['that the issuer is absent', { iss: undefined }, 'it lacks the claim "iss"'],
    [
      'that the audience differs',
      { aud: ['a', 'b'] },
      'its claim "aud" is ["a","b"], which names no audience of this store',
    ],
    ['that the token is not valid yet', { nbf: 2 ** 32 }, '"nbf" is in the future'],
  ])('%s', async (_, claims, words) => {
    const message = expect.stringContaining(words)
    const refusal = { code: 'invalid-token', message }
    await expectRefusal(createGate(), await sign(key, claims), refusal)
  })

  test.each<[string, () => Promise<string>, string]>([
    [
      'that the provider has no such key',
      async () => sign(await makeKey('unknown')),
      'no key of the identity provider fits its header',
    ],
    [
      'that the token is encrypted',
      async () => `${encode({ alg: 'RSA-OAEP', enc: 'A256GCM' })}.a.b.c.d`,
      'the access token is an encrypted JWT',
    ],
    [
      'that padding is not base64url',
      async () => `${await sign(key)}=`,
      'base64url (RFC 7515) has no "=", "+" and "/"',
    ],
    [
      'that standard base64 is not base64url',
      async () =>
        Buffer.from('{"alg":"ES256","typ":"?>?>"}').toString('base64').concat('.a.b'),
      'base64url (RFC 7515) has no "=", "+" and "/"',
    ],
    [
      'that its claims cannot be read',
      async () => `${encode({ alg: 'ES256' })}.a.b`,
      'its claims cannot be read',
    ],
    ['only what the other gate says of an opaque token', async () => 'a.b.c', 'opaque'],
  ])('%s', async (_, makeToken, words) => {
    const otherwise: Gate = () => {
      throw new AccessError('invalid-token', 'opaque')
    }

    const message = expect.stringContaining(words)
    const refusal = { code: 'invalid-token', message }
    await expectRefusal(createGate({ otherwise }), await makeToken(), refusal)
  })

  test('what the other gate says if that one knows the holder', async () => {
    const foreign = await sign(key, { iss: 'https://other.example' })
    const refusal = new AccessError('invalid-token', 'expired', undefined, 'flora')
    const otherwise: Gate = async () => Promise.reject(refusal)

    expect(await admit(createGate({ otherwise }), foreign)).toBe(refusal)
  })

  test.each<[string, object, string]>([
    [
      'that the scope is a list',
      { scope: ['plants:read'] },
      'its claim "scope" must be a text, with a space between two scopes (RFC 8693)',
    ],
    [
      'that the scope has other words',
      { scope: 'xplants:read' },
      '"scope" has other words',
    ],
    [
      'that scp is not read',
      { scope: undefined, scp: ['plants:read'] },
      'scopes are read from its claim "permissions" or "scope", and it has none: "scp" is not read',
    ],
    [
      'that the permissions decide',
      { permissions: [], scope: 'plants:read' },
      'its scopes are those of the claim "permissions"',
    ],
    [
      'that the permissions are no list',
      { permissions: 'plants:read' },
      'its claim "permissions" must be a list of texts',
    ],
  ])('%s', async (_, claims, words) => {
    const message = expect.stringContaining(words)
    const refusal = { code: 'insufficient-scope', scope: 'plants:read', message }
    const gate = createGate()
    const token = await signRemembered(gate, claims)

    await expectRefusal(gate, token, refusal)
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
    vi.setSystemTime(exp * 1000 + 31_000)
    expect(await ask(gate, token)).toBe('invalid-token')
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
  /** Asks for many tokens at once, and returns the distinct answers. */
  async function askAtOnce(gate: Gate, signNth: (n: number) => Promise<string>) {
    const answers = Array.from({ length: 50 }, async (_, n) =>
      ask(gate, await signNth(n)),
    )
    return [...new Set(await Promise.all(answers))]
  }

  test('is fetched once, and unknown keys cause one fetch a cool-down', async () => {
    const gate = createGate()
    await ask(gate, await sign(key))
    const forger = await makeKey('forged')
    for (const round of [1, 2, 3]) {
      vi.advanceTimersByTime(cooldownMs)
      const answers = await askAtOnce(gate, n =>
        sign(forger, {}, { kid: `forged-${round}-${n}` }),
      )
      expect(answers, `forged tokens in round ${round}`).toEqual(['invalid-token'])
      expect(provider.requestCount, `fetches after round ${round}`).toBe(1 + round)
    }

    const second = await makeKey('second')
    provider.keys = [key, second]
    vi.advanceTimersByTime(cooldownMs)
    expect(await askAtOnce(gate, n => sign(second, { jti: `${n}` }))).toEqual(['flora'])
    expect(provider.requestCount).toBe(5)
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
  const redirect = (response: ServerResponse) => {
    response.writeHead(302, { location: `${provider.jwksUrl}/elsewhere` }).end()
  }
  test.each<[string, (response: ServerResponse) => void, RegExp]>([
    [
      'sends its header section and hangs',
      response => response.writeHead(200).write('{'),
      /timeout/i,
    ],
    ['hangs up', response => response.destroy(), /^socket hang up$/],
    [
      'answers without a body',
      response => response.writeHead(204).end(),
      /^it answered 204$/,
    ],
    ['sends elsewhere', redirect, /^it answered 302$/],
    ['sends null', response => response.end('null'), /JSON Web Key Set/],
    ['has no keys', response => response.end('{"keys":[]}'), /^it has no keys$/],
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

  test.each<[string, string | undefined]>([
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
    for (const jti of ['1', '2']) {
      expect(await ask(gate, token), `the same token, ${jti}`).toBe('flora')
      const newToken = await sign(key, { jti })
      expect(await ask(gate, newToken), `new token ${jti}`).toBe('flora')
    }

    vi.advanceTimersByTime(1000)
    expect(await ask(gate, token)).toBe('access-unavailable')

    await provider.start()
    vi.advanceTimersByTime(cooldownMs)
    expect(await ask(gate, token)).toBe('flora')
    expect(failures).toEqual([expect.any(String), undefined])
  })

  test('hangs delays no stop', async () => {
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

test.each<[string, object]>([
  ['several operations', { key_ops: ['sign', 'verify', 'wrapKey', 'verify'] }],
  ['members that are null', { alg: null, use: null, key_ops: null, ext: null }],
])('a key with %s is used', async (_, members) => {
  provider.keys = [{ ...key, jwk: { ...key.jwk, ...members } }]

  expect(await ask(createGate(), await sign(key))).toBe('flora')
})

test('a key that may not verify is not used', async () => {
  provider.keys = [{ ...key, jwk: { ...key.jwk, key_ops: ['sign'] } }]

  expect(await ask(createGate(), await sign(key))).toBe('invalid-token')
})

test.each<[string, Partial<JwtGateOptions>]>([
  ['a URL without https', { jwksUrl: 'http://identity.example/jwks' }],
  ['a symmetric algorithm', { algorithms: ['HS256' as never] }],
  ['no algorithm', { algorithms: [] }],
  ['no issuer', { issuer: '' }],
  ['no audience', { audience: [] }],
  ['an empty audience', { audience: '' }],
])('%s is refused when the gate is made', (_, options) => {
  expect(() => createGate(options)).toThrow(TypeError)
})

import { createHmac } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { AccessError, type Credentials, type Gate, type Scope } from '@plant-store/access'
import { createJwtGate, type JwtGateOptions } from '@plant-store/jwt'
import { jwtAlgorithms } from '@plant-store/jwt/settings'
import { base64url, exportSPKI, generateKeyPair, importJWK } from 'jose'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { audience, makeKey, provider, type SigningKey, sign } from './provider.ts'

let key: SigningKey
beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['performance', 'Date'] })
  // No process is younger than every limit for long.
  vi.advanceTimersByTime(100_000_000)
  key = await makeKey('first')
  provider.keys = [key]
  provider.asked = 0
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
  throw new AccessError(
    token === undefined ? 'no-token' : 'invalid-token',
    'not for the provider',
  )
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

/** Returns the name of the holder, or the code of the refusal. */
async function ask(
  gate: Gate,
  token: string | undefined,
  scope: Scope = 'plants:write',
): Promise<string> {
  try {
    return (await gate(credentials(token), scope)).name
  } catch (error) {
    if (!(error instanceof AccessError)) {
      throw error
    }
    return error.code
  }
}

const inSeconds = (ms: number) => Math.floor((Date.now() + ms) / 1000)
const json = (value: object) => base64url.encode(JSON.stringify(value))

describe('a token', () => {
  test('signed with any algorithm of the list is admitted', async () => {
    const keys = await Promise.all(jwtAlgorithms.map(alg => makeKey(alg, alg)))
    provider.keys = keys
    const gate = createGate()
    for (const each of keys) {
      expect(await ask(gate, await sign(each)), each.alg).toBe('flora')
    }
  })

  test.each<[string, object, string]>([
    ['that expired within the skew', { exp: -29_000 }, 'flora'],
    ['that expired before', { exp: -31_000 }, 'invalid-token'],
    ['that begins within the skew', { nbf: 29_000 }, 'flora'],
    ['that begins later', { nbf: 32_000 }, 'invalid-token'],
  ])('%s: %s', async (_, times, outcome) => {
    const claims = Object.fromEntries(
      Object.entries(times).map(([name, ms]) => [name, inSeconds(ms)]),
    )
    expect(await ask(createGate(), await sign(key, claims))).toBe(outcome)
  })

  test.each<[string, object, RegExp?]>([
    ['without exp', { exp: undefined }],
    ['whose exp is a text', { exp: '2100' }],
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
    ['for another audience', { aud: 'https://other.example' }],
    ['for no audience', { aud: undefined }],
    ['of nearly this issuer', { iss: 'https://identity.example' }],
    ['of no issuer', { iss: undefined }],
    [
      'that is too long',
      { padding: 'x'.repeat(8192) },
      /^the access token is longer than 8192 bytes$/,
    ],
  ])('%s is refused', async (_, claims, reason = /./) => {
    const admission = async (token: string) =>
      createGate()(credentials(token), 'plants:write')
    const refusal = { code: 'invalid-token', message: expect.stringMatching(reason) }
    await expect(admission(await sign(key, claims))).rejects.toMatchObject(refusal)
  })

  test.each<[string, () => object, Scope, string | undefined]>([
    ['that expired', () => ({ exp: inSeconds(-31_000) }), 'plants:read', 'flora'],
    ['without the scope', () => ({}), 'metrics:read', 'flora'],
    [
      'for another audience, whose sub is a number',
      () => ({ aud: 'x', sub: 7 }),
      'plants:read',
      undefined,
    ],
  ])('%s is refused with its subject for the log', async (_, claimsOf, scope, holder) => {
    const gate = createGate()
    const refused = async (token: string) =>
      Promise.resolve(gate(credentials(token), scope)).catch(
        (error: AccessError) => error,
      )
    expect(await refused(await sign(key, claimsOf()))).toMatchObject({
      name: 'AccessError',
      holder,
    })
    // Anybody can write a subject.
    const forged = await refused(await sign(await makeKey('first'), claimsOf()))
    expect(forged).toMatchObject({ code: 'invalid-token', holder: undefined })
  })

  test('for several audiences is admitted when one of ours is among them', async () => {
    const token = await sign(key, { aud: ['https://other.example', audience] })
    expect(await ask(createGate({ audience: ['x', audience] }), token)).toBe('flora')
    expect(await ask(createGate({ audience: ['x'] }), token)).toBe('invalid-token')
  })

  test.each<[string, object, Scope, string]>([
    ['scope that has it', { scope: 'a plants:read' }, 'plants:read', 'flora'],
    [
      'scope that has it as a part',
      { scope: 'xplants:write' },
      'plants:write',
      'insufficient-scope',
    ],
    [
      'scope that is a list',
      { scope: ['plants:read'] },
      'plants:read',
      'insufficient-scope',
    ],
    ['no scope', { scope: undefined }, 'plants:read', 'insufficient-scope'],
    [
      'permissions for figures',
      { permissions: ['metrics:read'] },
      'metrics:read',
      'flora',
    ],
    [
      'permissions that lack what scope has',
      { permissions: [] },
      'plants:write',
      'insufficient-scope',
    ],
    [
      'permissions that are a text',
      { permissions: 'plants:read' },
      'plants:read',
      'insufficient-scope',
    ],
    [
      'permissions that are null',
      { permissions: null, scope: 'plants:read' },
      'plants:read',
      'flora',
    ],
  ])('with %s', async (_, claims, scope, outcome) => {
    const gate = createGate()
    const token = await sign(key, claims)
    for (const time of ['checked', 'remembered']) {
      expect(await ask(gate, token, scope), time).toBe(outcome)
    }
  })

  test('that was changed or signed by another key is refused', async () => {
    const [header, , signature] = (await sign(key)).split('.')
    const [, payload] = (await sign(key, { sub: 'root' })).split('.')
    for (const token of [
      `${header}.${payload}.${signature}`,
      await sign(await makeKey('first')),
    ]) {
      expect(await ask(createGate(), token), `${token}`).toBe('invalid-token')
    }
  })

  test('without a signature, or signed with a public key, is refused', async () => {
    key = await makeKey('rsa', 'RS256')
    provider.keys = [key]
    const payload = (await sign(key)).split('.')[1]
    const gate = createGate()
    for (const alg of ['none', 'None', 'NONE']) {
      expect(await ask(gate, `${json({ alg, kid: 'rsa' })}.${payload}.`), alg).toBe(
        'invalid-token',
      )
    }
    const publicKey = (await importJWK(
      { ...key.jwk, ext: true } as never,
      'RS256',
    )) as CryptoKey
    for (const secret of [await exportSPKI(publicKey), JSON.stringify(key.jwk)]) {
      const signed = `${json({ alg: 'HS256', kid: 'rsa' })}.${payload}`
      const signature = createHmac('sha256', secret).update(signed).digest('base64url')
      expect(await ask(gate, `${signed}.${signature}`), secret).toBe('invalid-token')
    }
  })

  test('of an algorithm that is not on the list is refused', async () => {
    expect(
      await ask(createGate({ algorithms: ['RS256', 'ES256'] }), await sign(key)),
    ).toBe('flora')
    expect(await ask(createGate({ algorithms: ['RS256'] }), await sign(key))).toBe(
      'invalid-token',
    )
  })

  test("that brings its own key is checked with the provider's", async () => {
    const { privateKey } = await generateKeyPair('ES256')
    const own = { ...(await makeKey('own')), privateKey }
    const header = { jwk: own.jwk, jku: provider.jwksUrl, kid: undefined } as object
    expect(await ask(createGate(), await sign(own, {}, header))).toBe('invalid-token')
  })

  test.each([
    ['is a megabyte of dots', () => '.'.repeat(2 ** 20)],
    ['has five parts, as what is encrypted has', async () => `${await sign(key)}.a.b`],
    ['is not JSON', () => 'a.b.c'],
    ['is opaque', () => 'plantstore_1'],
    ['is empty', () => ''],
    ['a blank follows', async () => `${await sign(key)} `],
  ])('that %s is none', async (_, make) => {
    const gate = createGate({ otherwise: () => ({ name: 'other' }) })
    expect(await ask(gate, await make())).toBe('other')
  })

  test('that has just the length allowed is admitted, and no longer one', async () => {
    const bytesMax = 8192
    const { length } = await sign(key, { padding: '' })
    const padded = (bytes: number) => sign(key, { padding: 'x'.repeat(bytes) })
    const fitting = Math.floor(((bytesMax - length) * 3) / 4)
    expect((await padded(fitting)).length).toBeGreaterThan(bytesMax - 3)
    expect(await ask(createGate(), await padded(fitting))).toBe('flora')
    expect(await ask(createGate(), await padded(fitting + 2))).toBe('invalid-token')
  })
})

test('the other gate gets what is no JWT of this issuer, and nothing else', async () => {
  const seen: unknown[] = []
  const otherwise: Gate = ({ token, headers }) => {
    seen.push([token, headers])
    return { name: 'other' }
  }
  const gate = createGate({ otherwise })
  const foreign = await sign(key, { iss: 'https://other.example' })
  for (const token of [undefined, foreign]) {
    expect(await ask(gate, token), `${token}`).toBe('other')
  }
  expect(await ask(gate, await sign(key))).toBe('flora')
  expect(await ask(gate, await sign(key, { exp: 1 }))).toBe('invalid-token')
  expect(seen).toEqual([undefined, foreign].map(token => [token, {}]))
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
    ['two keys with one kid, its own first', async () => [key, await makeKey('first')]],
    ['two keys with one kid, its own last', async () => [await makeKey('first'), key]],
    ['a broken key before its own', async () => [brokenCopyOf(key), key]],
    ['a broken key behind its own', async () => [key, brokenCopyOf(key)]],
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

  test('is refused if none of them signed it', async () => {
    provider.keys = [await makeKey('first'), await makeKey('first')]

    const refused = createGate()(credentials(await sign(key)), 'plants:read')

    await expect(refused).rejects.toThrow('signature verification failed')
  })

  test('is refused for its claims by the key that signed it', async () => {
    provider.keys = [await makeKey('first'), key]
    const token = await sign(key, { exp: inSeconds(-31_000) })

    const refused = createGate()(credentials(token), 'plants:read')

    await expect(refused).rejects.toThrow('the access token has expired')
  })

  test('cannot be checked if all of them are broken', async () => {
    provider.keys = [brokenCopyOf(key), brokenCopyOf(key)]

    expect(await ask(createGate(), await sign(key))).toBe('access-unavailable')
  })
})

describe('a refusal says', () => {
  const refusal = async (gate: Gate, token: string, scope: Scope = 'plants:read') => {
    try {
      return await gate(credentials(token), scope)
    } catch (error) {
      return error
    }
  }

  test.each<[string, object, string]>([
    [
      'that the issuer differs',
      { iss: 'https://identity.example' },
      'its claim "iss" is "https://identity.example", which is not exactly the issuer',
    ],
    ['that the issuer is absent', { iss: undefined }, 'it lacks the claim "iss"'],
    ['that the issuer is no text', { iss: 7 }, 'its claim "iss" is 7'],
    [
      'what is left of a long issuer',
      { iss: `https://${'x'.repeat(300)}` },
      `"https://${'x'.repeat(191)}…, which`,
    ],
    [
      'that the audience differs',
      { aud: ['a', 'b'] },
      'its claim "aud" is ["a","b"], which names no audience of this store',
    ],
    ['that the token is not valid yet', { nbf: 2 ** 32 }, '"nbf" is in the future'],
  ])('%s', async (_, claims, words) => {
    const refused = await refusal(createGate(), await sign(key, claims))

    expect(refused).toMatchObject({ code: 'invalid-token' })
    expect(refused).toMatchObject({ message: expect.stringContaining(words) })
  })

  test.each<[string, () => Promise<string>, string]>([
    [
      'that the provider has no such key',
      async () => sign(await makeKey('unknown')),
      'no key of the identity provider fits its header',
    ],
    [
      'that the token is encrypted',
      async () => `${json({ alg: 'RSA-OAEP', enc: 'A256GCM' })}.a.b.c.d`,
      'the access token is an encrypted JWT',
    ],
    [
      'that its claims cannot be read',
      async () => `${json({ alg: 'ES256' })}.a.b`,
      'its claims cannot be read',
    ],
    ['only what the other gate says of an opaque token', async () => 'a.b.c', 'opaque'],
  ])('%s', async (_, makeToken, words) => {
    const otherwise: Gate = () => {
      throw new AccessError('invalid-token', 'opaque')
    }

    const refused = await refusal(createGate({ otherwise }), await makeToken())

    expect(refused).toMatchObject({ code: 'invalid-token' })
    expect(refused).toMatchObject({ message: expect.stringContaining(words) })
  })

  test('what the other gate says if it knows the holder or rejects', async () => {
    const foreign = await sign(key, { iss: 'https://other.example' })
    const known = new AccessError('invalid-token', 'expired', undefined, 'flora')
    const otherwise: Gate = async () => Promise.reject(known)

    expect(await refusal(createGate({ otherwise }), foreign)).toBe(known)
  })

  test('that the issuer differs also if the other gate rejects', async () => {
    const foreign = await sign(key, { iss: 'https://other.example' })
    const unknown = new AccessError('invalid-token', 'unknown')
    const otherwise: Gate = async () => Promise.reject(unknown)

    const refused = await refusal(createGate({ otherwise }), foreign)

    expect(refused).toMatchObject({ message: expect.stringContaining('"iss"') })
  })

  test.each<[string, object, string]>([
    [
      'that the scope is a list',
      { scope: ['plants:read'] },
      'its claim "scope" must be a text, with a space between two scopes (RFC 8693)',
    ],
    ['that the scope has other words', { scope: 'openid' }, '"scope" has other words'],
    [
      'that scp is not read',
      { scope: undefined, scp: ['plants:read'] },
      'scopes are read from its claim "permissions" or "scope", and it has none: "scp" is not read',
    ],
    [
      'that there is no claim with scopes',
      { scope: undefined },
      '"permissions" or "scope", and it has none',
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
    const refused = await refusal(createGate(), await sign(key, claims))

    expect(refused).toMatchObject({ code: 'insufficient-scope', scope: 'plants:read' })
    expect(refused).toMatchObject({ message: expect.stringContaining(words) })
  })
})

describe('a token that was checked', () => {
  /** Signed, and checked until it is remembered. */
  const known = async (gate: Gate, claims: object = {}) => {
    const token = await sign(key, claims)
    for (const _ of ['with keys that were not there yet', 'remembered']) {
      await ask(gate, token)
    }
    return token
  }
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
    const token = await known(gate, { exp: inSeconds(10_000) })
    vi.setSystemTime(inSeconds(10_000) * 1000 - 1)
    expect(isRemembered(gate, token)).toBe(true)
    vi.setSystemTime(Date.now() + 1)
    expect(isRemembered(gate, token)).toBe(false)
    // The skew is left to be judged again.
    expect(await ask(gate, token)).toBe('flora')
    vi.setSystemTime(Date.now() + 31_000)
    expect(await ask(gate, token)).toBe('invalid-token')
  })

  test('is checked again with new keys, and refused if its key is gone', async () => {
    const gate = createGate()
    const token = await known(gate, { exp: inSeconds(2 * refreshAfterMs) })
    const second = await makeKey('second')
    provider.keys = [second]
    vi.advanceTimersByTime(refreshAfterMs - 1)
    expect(isRemembered(gate, token)).toBe(true)
    expect(provider.asked).toBe(1)
    vi.advanceTimersByTime(1)
    // Nobody waits for what is fetched besides.
    expect(isRemembered(gate, token)).toBe(true)
    await expect.poll(() => isRemembered(gate, token)).toBe(false)
    expect(await ask(gate, token)).toBe('invalid-token')
    expect(await ask(gate, await sign(second))).toBe('flora')
    expect(provider.asked).toBe(2)
  })
})

describe('a key that the provider has since', () => {
  test('is fetched once, and unknown keys cause one fetch a cool-down', async () => {
    const gate = createGate()
    await ask(gate, await sign(key))
    const forger = await makeKey('forged')
    const guess = async (n: number) =>
      ask(gate, await sign(forger, { jti: `${n}` }, { kid: `forged-${n}` }))
    for (const n of [1, 2, 3]) {
      vi.advanceTimersByTime(cooldownMs)
      const forged = Array.from({ length: 50 }, (_, each) => guess(100 * n + each))
      expect(new Set(await Promise.all(forged)), `${n}`).toEqual(
        new Set(['invalid-token']),
      )
      expect(provider.asked, `${n}`).toBe(1 + n)
    }
    const second = await makeKey('second')
    provider.keys = [key, second]
    vi.advanceTimersByTime(cooldownMs)
    const asking = Array.from({ length: 20 }, async (_, n) =>
      ask(gate, await sign(second, { jti: `${n}` })),
    )
    expect(new Set(await Promise.all(asking))).toEqual(new Set(['flora']))
    expect(provider.asked).toBe(5)
  })

  test('is found after the clock was set back', async () => {
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
  /** `undefined` when it works again. */
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
    ['hangs up', response => response.destroy(), /^other side closed$/],
    [
      'answers without a body',
      response => response.writeHead(204).end(),
      /^it answered 204$/,
    ],
    ['sends elsewhere', redirect, /^it answered 302$/],
    ['sends nothing', response => response.end(), /JSON/],
    ['sends null', response => response.end('null'), /JSON Web Key Set/],
    ['sends no list', response => response.end('{"keys":{}}'), /JSON Web Key Set/],
    ['has no keys', response => response.end('{"keys":[]}'), /^it has no keys$/],
    ['has many keys', response => response.end(keys(101)), /^it has more than 100 keys$/],
    [
      'sends megabytes',
      response => response.end(' '.repeat(256 * 1024 + 1)),
      /^its answer is longer than 262144 bytes$/,
    ],
  ])(
    '%s gets nobody in, and no good token refused for good',
    async (_, answer, reason) => {
      provider.answer = (_request, response) => answer(response)
      const { timeout } = AbortSignal
      // A provider that hangs is given up earlier.
      if (reason.test('timeout')) {
        vi.spyOn(AbortSignal, 'timeout').mockImplementationOnce(ms =>
          timeout.call(AbortSignal, ms / 10),
        )
      }
      const gate = createGate({ onFailureChange, otherwise: () => ({ name: 'other' }) })
      const token = await sign(key)
      expect(await ask(gate, token)).toBe('access-unavailable')
      expect(await ask(gate, 'opaque')).toBe('other')
      expect(failures).toEqual([expect.stringMatching(reason)])
      // The provider is not asked again for every request.
      const { asked } = provider
      expect(await ask(gate, token)).toBe('access-unavailable')
      expect(provider.asked).toBe(asked)
      provider.answer = undefined
      vi.advanceTimersByTime(cooldownMs)
      expect(await ask(gate, token)).toBe('flora')
      expect(failures).toEqual([expect.any(String), undefined])
    },
  )

  test.each<[string, (jwk: object) => object]>([
    ['a broken key', jwk => ({ ...jwk, n: undefined })],
    [
      'a key of 512 bits',
      jwk => ({ ...jwk, n: base64url.encode(new Uint8Array(64).fill(255)) }),
    ],
  ])('has %s gets nobody in', async (_, spoil) => {
    const rsa = await makeKey('rsa', 'RS256')
    provider.keys = [key, { ...rsa, jwk: spoil(rsa.jwk) }]
    const gate = createGate({ onFailureChange })
    for (const attempt of [1, 2]) {
      expect(await ask(gate, await sign(rsa)), `${attempt}`).toBe('access-unavailable')
    }
    expect(failures).toEqual([expect.any(String)])
    expect(await ask(gate, await sign(key))).toBe('flora')
  })

  test('is down at the start is asked again', async () => {
    await provider.stop()
    const gate = createGate({ onFailureChange })
    const token = await sign(key)
    expect(await ask(gate, token)).toBe('access-unavailable')
    await provider.start()
    vi.advanceTimersByTime(cooldownMs)
    expect(await ask(gate, token)).toBe('flora')
  })

  test('is down later leaves its keys good for an hour', async () => {
    const gate = createGate({ onFailureChange })
    const token = await sign(key, { exp: inSeconds(7_200_000) })
    const later = await sign(await makeKey('second'))
    for (const _ of ['checked', 'remembered']) {
      await ask(gate, token)
    }
    await provider.stop()
    vi.advanceTimersByTime(cooldownMs)
    expect(await ask(gate, later)).toBe('access-unavailable')
    expect(await ask(gate, await sign(await makeKey('first')))).toBe('invalid-token')
    vi.advanceTimersByTime(3_599_000 - cooldownMs)
    for (const jti of ['1', '2']) {
      expect(await ask(gate, token), jti).toBe('flora')
      expect(await ask(gate, await sign(key, { jti })), jti).toBe('flora')
    }
    vi.advanceTimersByTime(1000)
    expect(await ask(gate, token)).toBe('access-unavailable')
    await provider.start()
    vi.advanceTimersByTime(cooldownMs)
    expect(await ask(gate, token)).toBe('flora')
    expect(failures).toEqual([expect.any(String), undefined])
  })

  test('hangs holds nobody up who wants to stop', async () => {
    provider.answer = () => {}
    const stop = new AbortController()
    const gate = createGate({ signal: stop.signal })
    const asked = ask(gate, await sign(key))
    stop.abort()
    expect(await asked).toBe('access-unavailable')
  })
})

test('keys of just the size allowed are read', async () => {
  provider.answer = (_, response) =>
    response.end(JSON.stringify({ keys: [key.jwk] }).padEnd(256 * 1024))
  expect(await ask(createGate(), await sign(key))).toBe('flora')
})

test('keys that arrive in pieces are put together, wherever they were cut', async () => {
  key = await makeKey('🌳')
  const bytes = Buffer.from(JSON.stringify({ keys: [key.jwk] }))
  const cut = bytes.indexOf('🌳') + 2
  const pieces = [bytes.subarray(0, cut), bytes.subarray(cut)]
  vi.stubGlobal('fetch', async () => new Response(ReadableStream.from(pieces)))
  onTestFinished(() => void vi.unstubAllGlobals())
  expect(await ask(createGate(), await sign(key))).toBe('flora')
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

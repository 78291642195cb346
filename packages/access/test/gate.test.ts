import {
  AccessError,
  type AccessToken,
  createGate,
  hashToken,
  mintToken,
  type Scope,
  scopes,
  type TokenHash,
} from '@plant-store/access'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'

/** The gate reads a monotonic clock for what it remembers, and the time of day for what has expired. */
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance', 'Date'] })
  // Like a process that has run for a while: its clock began at 0.
  vi.advanceTimersByTime(3_600_000)
})
afterEach(() => void vi.useRealTimers())

async function setUp(given: Partial<AccessToken> = {}) {
  const stored = new Map<TokenHash, AccessToken>()
  const find = vi.fn(async (hash: TokenHash) => stored.get(hash))
  const token = mintToken()
  const holder: AccessToken = { name: 'holder', scopes, createdAt: new Date(), ...given }
  stored.set(hashToken(token), holder)
  return { stored, tokens: { find, markUsed: vi.fn(async () => {}) }, find, token, holder }
}
/** Whether it throws or rejects. */
async function refusal(attempt: () => unknown): Promise<unknown> {
  try {
    await attempt()
  } catch (error) {
    return error
  }
  throw new Error('it was admitted')
}

test('admits a token with the scope and returns its holder', async () => {
  const { tokens, token } = await setUp()
  const gate = createGate({ tokens })
  for (const scope of scopes) expect(await gate({ token }, scope)).toMatchObject({ name: 'holder', scopes })
})

test('refuses who presents none, without asking the repository', async () => {
  const { tokens, find } = await setUp()
  const error = await refusal(() => createGate({ tokens })({ token: undefined }, 'plants:read'))
  expect(error).toBeInstanceOf(AccessError)
  expect(error).toMatchObject({ code: 'no-token', scope: undefined })
  expect(`${error}`).toBe('AccessError: an access token is required')
  expect(find).not.toHaveBeenCalled()
})

test('refuses what nobody was given, also what is nearly a token', async () => {
  const { tokens, token } = await setUp()
  const gate = createGate({ tokens })
  await gate({ token }, 'plants:read')
  const near = [`${token} `, token.slice(0, -1), token.toUpperCase(), `${token}a`, hashToken(token)]
  for (const presented of ['', 'unknown', mintToken(), ...near])
    expect(await refusal(() => gate({ token: presented }, 'plants:read'))).toMatchObject({
      code: 'invalid-token',
      message: 'the access token is unknown or was revoked',
    })
})

test('refuses a token without the scope and names the scope, each time', async () => {
  const { tokens, token } = await setUp({ scopes: ['plants:read'] })
  const gate = createGate({ tokens })
  for (const scope of ['plants:write', 'metrics:read', 'plants:write'] satisfies Scope[]) {
    const message = `the access token lacks the scope ${scope}`
    expect(await refusal(() => gate({ token }, scope))).toMatchObject({
      code: 'insufficient-scope',
      message,
      scope,
      holder: 'holder',
    })
  }
  await gate({ token }, 'plants:read')
})

test('a token is valid up to the moment it expires, also when it is remembered', async () => {
  const expiresAt = new Date(Date.now() + 1000)
  const { tokens, token, find } = await setUp({ expiresAt })
  const gate = createGate({ tokens })
  await gate({ token }, 'plants:read')
  vi.advanceTimersByTime(999)
  await gate({ token }, 'plants:read')
  vi.advanceTimersByTime(1)
  expect(await refusal(() => gate({ token }, 'plants:read'))).toMatchObject({
    code: 'invalid-token',
    message: 'the access token has expired',
    holder: 'holder',
  })
  expect(find).toHaveBeenCalledTimes(1)
  // Before it is told to lack a scope.
  const other = await setUp({ scopes: [], expiresAt })
  const fresh = createGate({ tokens: other.tokens })
  expect(await refusal(() => fresh({ token: other.token }, 'plants:read'))).toMatchObject({
    code: 'invalid-token',
  })
})

test('answers at once for a token it remembers, and asks the repository again after the time given', async () => {
  const { tokens, token, find } = await setUp()
  const gate = createGate({ tokens })
  expect(gate({ token }, 'plants:read')).toBeInstanceOf(Promise)
  await gate({ token }, 'plants:read')
  find.mockClear()

  vi.advanceTimersByTime(1999)
  for (let n = 0; n < 100; n++) expect(gate({ token }, 'plants:read')).not.toBeInstanceOf(Promise)
  expect(find).not.toHaveBeenCalled()

  vi.advanceTimersByTime(1)
  await gate({ token }, 'plants:read')
  expect(find).toHaveBeenCalledTimes(1)
})

test('a revoked token works no longer than the time given, also if the time of day is set back', async () => {
  const { stored, tokens, token } = await setUp()
  const gate = createGate({ tokens })
  await gate({ token }, 'plants:read')
  stored.clear()
  vi.advanceTimersByTime(1999)
  await gate({ token }, 'plants:read')
  vi.advanceTimersByTime(1)
  vi.setSystemTime(0)
  for (let n = 0; n < 3; n++) {
    // A gate that has admitted it knows whose it was.
    const refused = { code: 'invalid-token', holder: 'holder' }
    expect(await refusal(() => gate({ token }, 'plants:read'))).toMatchObject(refused)
  }
  expect(await refusal(() => createGate({ tokens })({ token }, 'plants:read'))).toMatchObject({
    holder: undefined,
  })
})

test('the time counts from when the look-up began, however long it took', async () => {
  const { stored, tokens, token, find } = await setUp()
  const gate = createGate({ tokens })
  const slow = Promise.withResolvers<AccessToken | undefined>()
  find.mockImplementationOnce(() => slow.promise)
  const first = gate({ token }, 'plants:read')
  stored.clear()
  vi.advanceTimersByTime(2000)
  slow.resolve({ name: 'holder', scopes, createdAt: new Date() })
  await first
  expect(await refusal(() => gate({ token }, 'plants:read'))).toMatchObject({ code: 'invalid-token' })
})

test('a token that is given scopes or loses them has them after the time given', async () => {
  const { stored, tokens, token, holder } = await setUp({ scopes: ['plants:read'] })
  const gate = createGate({ tokens })
  await gate({ token }, 'plants:read')
  stored.set(hashToken(token), { ...holder, scopes: ['plants:write'] })
  vi.advanceTimersByTime(2000)
  await gate({ token }, 'plants:write')
  expect(await refusal(() => gate({ token }, 'plants:read'))).toMatchObject({ code: 'insufficient-scope' })
})

test('an unknown token is not remembered: once it is given to somebody it works', async () => {
  const { stored, tokens, holder } = await setUp()
  const gate = createGate({ tokens })
  const token = mintToken()
  expect(await refusal(() => gate({ token }, 'plants:read'))).toMatchObject({ code: 'invalid-token' })
  stored.set(hashToken(token), { ...holder, name: 'late' })
  expect(await gate({ token }, 'plants:read')).toMatchObject({ name: 'late' })
})

test('what the repository fails with comes through, and a remembered token is not held against it', async () => {
  const { tokens, token, find } = await setUp()
  const gate = createGate({ tokens })
  await gate({ token }, 'plants:read')
  const failure = new Error('no store')
  vi.advanceTimersByTime(2000)
  find.mockRejectedValueOnce(failure)
  expect(await refusal(() => gate({ token }, 'plants:read'))).toBe(failure)
  await gate({ token }, 'plants:read')
})

describe('the moment of a last use', () => {
  test('is written down once a minute, not with every request', async () => {
    const { tokens, token } = await setUp()
    const gate = createGate({ tokens })
    const useTwice = async () => {
      for (const _ of [1, 2]) await gate({ token }, 'plants:read')
    }
    const before = Date.now()
    await useTwice()
    vi.advanceTimersByTime(59_999)
    await useTwice()
    expect(tokens.markUsed.mock.calls).toEqual([[hashToken(token), new Date(before)]])
    vi.advanceTimersByTime(1)
    await useTwice()
    expect(tokens.markUsed.mock.calls.slice(1)).toEqual([[hashToken(token), new Date()]])
  })

  test('is not written down for who is refused', async () => {
    const { tokens, token } = await setUp({ scopes: ['plants:read'] })
    const gate = createGate({ tokens })
    for (const presented of [token, 'guess']) await refusal(() => gate({ token: presented }, 'plants:write'))
    expect(tokens.markUsed).not.toHaveBeenCalled()
  })

  test('neither delays nor fails a request', async () => {
    const { tokens, token } = await setUp()
    const failing = [() => new Promise<void>(() => {}), () => Promise.reject(new Error('the disk is full'))]
    for (const markUsed of failing) {
      const gate = createGate({ tokens: { ...tokens, markUsed } })
      for (const _ of [1, 2]) expect(await gate({ token }, 'plants:read')).toMatchObject({ name: 'holder' })
    }
  })
})

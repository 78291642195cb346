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
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

/** The gate reads a monotonic clock for what it remembers, and the time of day for what has expired. */
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance', 'Date'] })
  // Like a process that has run for a while: its clock began at 0.
  vi.advanceTimersByTime(3_600_000)
})
afterEach(() => void vi.useRealTimers())

/** A gate before a repository with one token. */
function setUp(given: Partial<AccessToken> = {}) {
  const token = mintToken()
  const holder: AccessToken = { name: 'holder', scopes, createdAt: new Date(), ...given }
  const stored = new Map([[hashToken(token), holder]])
  const find = vi.fn(async (hash: TokenHash) => stored.get(hash))
  const markUsed = vi.fn(async () => {})
  const gate = createGate({ tokens: { find, markUsed } })
  /** Resolves to the holder, or to the refusal, whether it was thrown or rejected. */
  const ask = async (presented: string | undefined, scope: Scope = 'plants:read') => {
    try {
      return await gate({ token: presented }, scope)
    } catch (error) {
      return error
    }
  }
  return { stored, find, markUsed, token, holder, gate, ask }
}

const admitted = { name: 'holder' }
const invalid = { code: 'invalid-token' }

test('admits a token with the scope, and refuses it without, each time, with the name of the scope', async () => {
  const { token, ask } = setUp({ scopes: ['plants:read'] })
  expect(await ask(token)).toMatchObject({ name: 'holder', scopes: ['plants:read'] })
  for (const scope of [
    'plants:write',
    'metrics:read',
    'plants:write',
  ] satisfies Scope[]) {
    const message = `the access token lacks the scope ${scope}`
    const refusal = { code: 'insufficient-scope', message, scope, holder: 'holder' }
    expect(await ask(token, scope)).toMatchObject(refusal)
  }
  expect(await ask(token)).toMatchObject(admitted)
})

test('refuses who presents none, without asking the repository', async () => {
  const { ask, find } = setUp()
  const error = await ask(undefined)
  expect(error).toBeInstanceOf(AccessError)
  expect(error).toMatchObject({ code: 'no-token', scope: undefined })
  expect(`${error}`).toBe('AccessError: an access token is required')
  expect(find).not.toHaveBeenCalled()
})

test('refuses what nobody was given, also what is nearly a token', async () => {
  const { token, ask } = setUp()
  await ask(token)
  const near = [
    `${token} `,
    token.slice(0, -1),
    token.toUpperCase(),
    `${token}a`,
    hashToken(token),
  ]
  const refusal = {
    code: 'invalid-token',
    message: 'the access token is unknown or was revoked',
  }
  for (const presented of ['', 'unknown', mintToken(), ...near]) {
    expect(await ask(presented)).toMatchObject(refusal)
  }
})

test('a token is valid up to the moment it expires, also when it is remembered', async () => {
  const expiresAt = new Date(Date.now() + 1000)
  const { token, ask, find } = setUp({ expiresAt, scopes: ['plants:read'] })
  for (const ms of [0, 999]) {
    vi.advanceTimersByTime(ms)
    expect(await ask(token)).toMatchObject(admitted)
  }
  vi.advanceTimersByTime(1)
  const refusal = {
    code: 'invalid-token',
    message: 'the access token has expired',
    holder: 'holder',
  }
  // Before it is told to lack a scope.
  for (const scope of ['plants:read', 'plants:write'] as const) {
    expect(await ask(token, scope)).toMatchObject(refusal)
  }
  expect(find).toHaveBeenCalledTimes(1)
})

test('answers at once for a token it remembers, and asks the repository again after the time given', async () => {
  const { token, gate, ask, find } = setUp()
  await ask(token)
  vi.advanceTimersByTime(1999)
  for (let n = 0; n < 100; n++) {
    expect(gate({ token }, 'plants:read')).not.toBeInstanceOf(Promise)
  }
  expect(find).toHaveBeenCalledTimes(1)
  vi.advanceTimersByTime(1)
  await ask(token)
  expect(find).toHaveBeenCalledTimes(2)
})

test('a revoked token works no longer than the time given, also if the time of day is set back', async () => {
  const { stored, token, ask } = setUp()
  await ask(token)
  stored.clear()
  vi.advanceTimersByTime(1999)
  expect(await ask(token)).toMatchObject(admitted)
  vi.advanceTimersByTime(1)
  vi.setSystemTime(0)
  // A gate that has admitted it knows whose it was.
  for (let n = 0; n < 3; n++) {
    expect(await ask(token)).toMatchObject({ ...invalid, holder: 'holder' })
  }
  expect(await setUp().ask(token)).toMatchObject({ ...invalid, holder: undefined })
})

test('the time counts from when the look-up began, however long it took', async () => {
  const { stored, token, holder, ask, find } = setUp()
  const slow = Promise.withResolvers<AccessToken | undefined>()
  find.mockImplementationOnce(() => slow.promise)
  const first = ask(token)
  stored.clear()
  vi.advanceTimersByTime(2000)
  slow.resolve(holder)
  expect(await first).toMatchObject(admitted)
  expect(await ask(token)).toMatchObject(invalid)
})

test('a token that is given scopes or loses them has them after the time given', async () => {
  const { stored, token, holder, ask } = setUp({ scopes: ['plants:read'] })
  await ask(token)
  stored.set(hashToken(token), { ...holder, scopes: ['plants:write'] })
  vi.advanceTimersByTime(2000)
  expect(await ask(token, 'plants:write')).toMatchObject(admitted)
  expect(await ask(token)).toMatchObject({ code: 'insufficient-scope' })
})

test('an unknown token is not remembered: once it is given to somebody it works', async () => {
  const { stored, holder, ask } = setUp()
  const token = mintToken()
  expect(await ask(token)).toMatchObject(invalid)
  stored.set(hashToken(token), { ...holder, name: 'late' })
  expect(await ask(token)).toMatchObject({ name: 'late' })
})

test('what the repository fails with comes through, and a remembered token is not held against it', async () => {
  const { token, ask, find } = setUp()
  await ask(token)
  const failure = new Error('no store')
  vi.advanceTimersByTime(2000)
  find.mockRejectedValueOnce(failure)
  expect(await ask(token)).toBe(failure)
  expect(await ask(token)).toMatchObject(admitted)
})

test('the last use is written down once a minute, not with every request', async () => {
  const { token, ask, markUsed } = setUp()
  const before = new Date()
  for (const ms of [0, 0, 59_999, 0]) {
    vi.advanceTimersByTime(ms)
    await ask(token)
  }
  expect(markUsed.mock.calls).toEqual([[hashToken(token), before]])
  vi.advanceTimersByTime(1)
  for (const _ of [1, 2]) {
    await ask(token)
  }
  expect(markUsed.mock.calls.slice(1)).toEqual([[hashToken(token), new Date()]])
})

test('the last use is not written down for who is refused', async () => {
  const { token, ask, markUsed } = setUp({ scopes: ['plants:read'] })
  for (const presented of [token, 'guess']) {
    await ask(presented, 'plants:write')
  }
  expect(markUsed).not.toHaveBeenCalled()
})

test('writing down the last use neither delays nor fails a request', async () => {
  for (const written of [
    () => new Promise<void>(() => {}),
    () => Promise.reject(new Error('full')),
  ]) {
    const { token, ask, markUsed } = setUp()
    markUsed.mockImplementation(written)
    for (const _ of [1, 2]) {
      expect(await ask(token)).toMatchObject(admitted)
    }
  }
})

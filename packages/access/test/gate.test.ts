import {
  AccessError,
  type AccessToken,
  createGate,
  hashToken,
  mintToken,
  type Scope,
  scopes,
} from '@plant-store/access'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createMemoryTokens } from './memory-tokens.ts'

/** The gate reads a monotonic clock for what it remembers, and the time of day for what has expired. */
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance', 'Date'] })
  // Like a process that has run for a while: its clock began at 0.
  vi.advanceTimersByTime(3_600_000)
})
afterEach(() => void vi.useRealTimers())

async function setUp(given: Partial<AccessToken> = {}) {
  const tokens = createMemoryTokens()
  const find = vi.fn(tokens.find)
  const token = mintToken()
  const holder: AccessToken = { name: 'holder', scopes, createdAt: new Date(), ...given }
  await tokens.insert(holder, hashToken(token))
  return { tokens: { ...tokens, find }, find, token, holder }
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

test.each(['', 'unknown', 'plantstore_', mintToken()])(
  'refuses %j, which nobody was given',
  async presented => {
    const { tokens } = await setUp()
    expect(await refusal(() => createGate({ tokens })({ token: presented }, 'plants:read'))).toMatchObject({
      code: 'invalid-token',
      message: 'the access token is unknown or was revoked',
    })
  },
)

test('refuses what is nearly a token', async () => {
  const { tokens, token } = await setUp()
  const gate = createGate({ tokens })
  await gate({ token }, 'plants:read')
  for (const near of [`${token} `, token.slice(0, -1), token.toUpperCase(), `${token}a`, hashToken(token)]) {
    expect(await refusal(() => gate({ token: near }, 'plants:read'))).toMatchObject({ code: 'invalid-token' })
  }
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
  expect(await refusal(() => createGate({ tokens })({ token }, 'plants:read'))).toMatchObject({
    code: 'invalid-token',
  })
})

test('an expired token is told to be expired before it is told to lack a scope', async () => {
  const { tokens, token } = await setUp({ scopes: [], expiresAt: new Date(Date.now()) })
  expect(await refusal(() => createGate({ tokens })({ token }, 'plants:read'))).toMatchObject({
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

test('a revoked token works no longer than the time given, and then no more', async () => {
  const { tokens, token } = await setUp()
  const gate = createGate({ tokens })
  await gate({ token }, 'plants:read')
  await tokens.remove('holder')
  vi.advanceTimersByTime(1999)
  await gate({ token }, 'plants:read')
  vi.advanceTimersByTime(1)
  for (let n = 0; n < 3; n++) {
    // A gate that has admitted it knows whose it was.
    const refused = { code: 'invalid-token', holder: 'holder' }
    expect(await refusal(() => gate({ token }, 'plants:read'))).toMatchObject(refused)
  }
  expect(await refusal(() => createGate({ tokens })({ token }, 'plants:read'))).toMatchObject({
    holder: undefined,
  })
})

test('setting the time of day back keeps no revoked token alive', async () => {
  const { tokens, token } = await setUp()
  const gate = createGate({ tokens })
  await gate({ token }, 'plants:read')
  await tokens.remove('holder')
  vi.advanceTimersByTime(2000)
  vi.setSystemTime(0)
  expect(await refusal(() => gate({ token }, 'plants:read'))).toMatchObject({ code: 'invalid-token' })
})

test('the time counts from when the look-up began, however long it took', async () => {
  const { tokens, token, find } = await setUp()
  const gate = createGate({ tokens })
  const slow = Promise.withResolvers<AccessToken | undefined>()
  find.mockImplementationOnce(() => slow.promise)
  const first = gate({ token }, 'plants:read')
  await tokens.remove('holder')
  vi.advanceTimersByTime(2000)
  slow.resolve({ name: 'holder', scopes, createdAt: new Date() })
  await first
  expect(await refusal(() => gate({ token }, 'plants:read'))).toMatchObject({ code: 'invalid-token' })
})

test('a token that is given scopes or loses them has them after the time given', async () => {
  const { tokens, token, holder } = await setUp({ scopes: ['plants:read'] })
  const gate = createGate({ tokens })
  await gate({ token }, 'plants:read')
  await tokens.remove('holder')
  await tokens.insert({ ...holder, scopes: ['plants:write'] }, hashToken(token))
  vi.advanceTimersByTime(2000)
  await gate({ token }, 'plants:write')
  expect(await refusal(() => gate({ token }, 'plants:read'))).toMatchObject({ code: 'insufficient-scope' })
})

test('an unknown token is not remembered: once it is given to somebody it works', async () => {
  const { tokens, holder } = await setUp()
  const gate = createGate({ tokens })
  const token = mintToken()
  expect(await refusal(() => gate({ token }, 'plants:read'))).toMatchObject({ code: 'invalid-token' })
  await tokens.insert({ ...holder, name: 'late' }, hashToken(token))
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

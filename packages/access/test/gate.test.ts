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
import { beforeEach, describe, expect, test, vi } from 'vitest'

/**
 * The gate reads a monotonic clock for what it remembers, and the time of day for what
 * has expired.
 */
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance', 'Date'] })
  // The clock began at 0, as that of a process that has run for a while.
  vi.advanceTimersByTime(3_600_000)
})

const recheckAfterMs = 2000
const markUsedEveryMs = 60_000

/** Returns a gate before a repository with one token. */
function setUp(members: Partial<AccessToken> = {}) {
  const token = mintToken()
  const holder: AccessToken = {
    name: 'holder',
    scopes,
    createdAt: new Date(),
    ...members,
  }
  const stored = new Map([[hashToken(token), holder]])
  const find = vi.fn(async (hash: TokenHash) => stored.get(hash))
  const markUsed = vi.fn(async () => {})
  const gate = createGate({ find, markUsed })

  /** Resolves to the holder, or to the refusal, whether it was thrown or rejected. */
  async function ask(
    presented: string | undefined,
    scope: Scope = 'plants:read',
  ): Promise<unknown> {
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

describe('a token', () => {
  test('is admitted with its scope, and refused without, each time', async () => {
    const { token, ask } = setUp({ scopes: ['plants:read'] })
    const refused = {
      code: 'insufficient-scope',
      message: 'the access token lacks the scope plants:write',
      scope: 'plants:write',
      holder: 'holder',
    }

    expect(await ask(token)).toMatchObject({ name: 'holder', scopes: ['plants:read'] })
    expect(await ask(token, 'plants:write')).toMatchObject(refused)
    expect(await ask(token, 'plants:write')).toMatchObject(refused)
    const metrics = 'the access token lacks the scope metrics:read'
    expect(await ask(token, 'metrics:read')).toMatchObject({ message: metrics })
    expect(await ask(token)).toMatchObject(admitted)
  })

  test('is valid up to the moment it expires, also when it is remembered', async () => {
    const expiresAt = new Date(Date.now() + 1000)
    const { token, ask, find } = setUp({ expiresAt, scopes: ['plants:read'] })
    const expired = {
      code: 'invalid-token',
      message: 'the access token has expired',
      holder: 'holder',
    }

    expect(await ask(token)).toMatchObject(admitted)
    vi.advanceTimersByTime(999)
    expect(await ask(token)).toMatchObject(admitted)
    vi.advanceTimersByTime(1)
    expect(await ask(token)).toMatchObject(expired)
    // The refusal says nothing about a scope that the token lacks.
    expect(await ask(token, 'plants:write')).toMatchObject(expired)
    expect(find).toHaveBeenCalledTimes(1)
  })

  test('that is missing is refused without a lookup', async () => {
    const { ask, find } = setUp()

    const error = await ask(undefined)

    expect(error).toBeInstanceOf(AccessError)
    expect(error).toMatchObject({ code: 'no-token', scope: undefined })
    expect(`${error}`).toBe('AccessError: an access token is required')
    expect(find).not.toHaveBeenCalled()
  })

  test.each([
    ['an empty text', () => ''],
    ['a token that nobody has', () => mintToken()],
    ['a token and a space', (token: string) => `${token} `],
    ['a token in capitals', (token: string) => token.toUpperCase()],
    ['the hash of a token', hashToken],
  ])('is not %s', async (_, change) => {
    const { token, ask } = setUp()
    await ask(token)

    const refusal = await ask(change(token))

    const message = 'the access token is unknown or was revoked'
    expect(refusal).toMatchObject({ code: 'invalid-token', message })
  })
})

describe('a remembered token', () => {
  test('is admitted without a promise, and looked up again later', async () => {
    const { token, gate, ask, find } = setUp()
    await ask(token)

    vi.advanceTimersByTime(recheckAfterMs - 1)
    const answer = gate({ token }, 'plants:read')
    expect(answer).not.toBeInstanceOf(Promise)
    expect(find).toHaveBeenCalledTimes(1)

    vi.advanceTimersByTime(1)
    await ask(token)
    expect(find).toHaveBeenCalledTimes(2)
  })

  test('works for two seconds once it is revoked', async () => {
    const { stored, token, ask } = setUp()
    await ask(token)
    stored.clear()

    vi.advanceTimersByTime(recheckAfterMs - 1)
    expect(await ask(token)).toMatchObject(admitted)
    vi.advanceTimersByTime(1)
    // A clock that is set back changes nothing.
    vi.setSystemTime(0)
    expect(await ask(token)).toMatchObject({ ...invalid, holder: 'holder' })
    expect(await ask(token)).toMatchObject({ ...invalid, holder: 'holder' })
  })

  test('is as old as the beginning of its lookup', async () => {
    const { stored, token, holder, ask, find } = setUp()
    const slow = Promise.withResolvers<AccessToken | undefined>()
    find.mockImplementationOnce(() => slow.promise)
    const first = ask(token)
    stored.clear()

    vi.advanceTimersByTime(recheckAfterMs)
    slow.resolve(holder)

    expect(await first).toMatchObject(admitted)
    expect(await ask(token)).toMatchObject(invalid)
  })
})

describe('the last use', () => {
  test('is recorded once a minute, not with every request', async () => {
    const { token, ask, markUsed } = setUp()
    const first = new Date()

    await ask(token)
    await ask(token)
    vi.advanceTimersByTime(markUsedEveryMs - 1)
    await ask(token)
    expect(markUsed.mock.calls).toEqual([[hashToken(token), first]])

    vi.advanceTimersByTime(1)
    await ask(token)
    await ask(token)
    expect(markUsed.mock.calls.slice(1)).toEqual([[hashToken(token), new Date()]])
  })

  test('is not recorded for a refusal', async () => {
    const { token, ask, markUsed } = setUp({ scopes: ['plants:read'] })

    await ask(token, 'plants:write')
    await ask('guess', 'plants:write')

    expect(markUsed).not.toHaveBeenCalled()
  })

  test.each([
    { what: 'never ends', record: () => new Promise<void>(() => {}) },
    { what: 'fails', record: () => Promise.reject(new Error('full')) },
  ])('neither delays nor fails a request if recording it $what', async ({ record }) => {
    const { token, ask, markUsed } = setUp()
    markUsed.mockImplementation(record)

    expect(await ask(token)).toMatchObject(admitted)
    expect(await ask(token)).toMatchObject(admitted)
  })
})

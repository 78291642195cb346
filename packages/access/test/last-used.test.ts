import { type AccessToken, createGate, hashToken, isTokenName } from '@plant-store/access'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { createMemoryTokens } from './memory-tokens.ts'

const token: AccessToken = { name: 'shop', scopes: ['plants:read'], createdAt: new Date(0) }

async function shop() {
  const tokens = createMemoryTokens()
  await tokens.insert(token, hashToken('secret'))
  return tokens
}

describe('the moment of a last use', () => {
  test('is written down once a minute, not with every request', async () => {
    vi.useFakeTimers({ toFake: ['performance', 'Date'] })
    onTestFinished(() => void vi.useRealTimers())
    const tokens = await shop()
    const markUsed = vi.fn(tokens.markUsed)
    const gate = createGate({ tokens: { ...tokens, markUsed } })
    const useTwice = async () => {
      for (const _ of [1, 2]) await gate({ token: 'secret' }, 'plants:read')
    }
    await useTwice()
    vi.advanceTimersByTime(59_999)
    await useTwice()
    expect(markUsed.mock.calls).toEqual([[hashToken('secret'), new Date(Date.now() - 59_999)]])
    vi.advanceTimersByTime(1)
    await useTwice()
    expect(markUsed.mock.calls.slice(1)).toEqual([[hashToken('secret'), new Date()]])
  })

  test('reaches the repository', async () => {
    const tokens = await shop()
    const before = Date.now()
    await createGate({ tokens })({ token: 'secret' }, 'plants:read')
    const [listed] = await tokens.list()
    expect(listed?.lastUsedAt?.getTime()).toBeGreaterThanOrEqual(before)
  })

  test('is not written down for who is refused', async () => {
    const tokens = await shop()
    const gate = createGate({ tokens })
    await expect(gate({ token: 'secret' }, 'plants:write')).rejects.toMatchObject({
      code: 'insufficient-scope',
    })
    await expect(gate({ token: 'guess' }, 'plants:read')).rejects.toMatchObject({ code: 'invalid-token' })
    expect(await tokens.list()).toEqual([token])
  })

  test('neither delays nor fails a request', async () => {
    const tokens = await shop()
    const never = new Promise<void>(() => {})
    const fail = async () => {
      throw new Error('the disk is full')
    }
    for (const markUsed of [() => never, fail]) {
      const gate = createGate({ tokens: { ...tokens, markUsed } })
      expect(await gate({ token: 'secret' }, 'plants:read')).toEqual(token)
      expect(await gate({ token: 'secret' }, 'plants:read')).toEqual(token)
    }
  })
})

test.each([
  ['shop', true],
  ['Läden & Höfe (2)', true],
  ['x'.repeat(100), true],
  ['x', true],
  ['', false],
  [' shop', false],
  ['shop ', false],
  ['two\nlines', false],
  ['two\u2028lines', false],
  ['\u001b[31mred', false],
  ['x'.repeat(101), false],
])('%j as the name of a token: %s', (name, expected) => {
  expect(isTokenName(name)).toBe(expected)
})

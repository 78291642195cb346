import { type AccessToken, createGate, hashToken, isTokenName, type TokenHash } from '@plant-store/access'
import { createMemoryTokenRepository } from '@plant-store/access/testing'
import { describe, expect, test } from 'vitest'

const token: AccessToken = { name: 'shop', scopes: ['plants:read'], createdAt: new Date(0) }

async function shop() {
  const tokens = createMemoryTokenRepository()
  await tokens.insert(token, hashToken('secret'))
  return tokens
}

describe('the moment of a last use', () => {
  test('is written down once in a while, not with every request', async () => {
    const marks: TokenHash[] = []
    const tokens = await shop()
    const gate = createGate({
      tokens: { ...tokens, markUsed: async hash => void marks.push(hash) },
      recheckAfterMs: 0,
      markUsedEveryMs: 30,
    })
    const startedMs = performance.now()
    while (performance.now() - startedMs < 100) await gate('secret', 'plants:read')
    const spentMs = performance.now() - startedMs
    expect(marks.length).toBeGreaterThanOrEqual(2)
    expect(marks.length).toBeLessThanOrEqual(Math.ceil(spentMs / 30) + 1)
    expect(new Set(marks)).toEqual(new Set([hashToken('secret')]))
  })

  test('reaches the repository', async () => {
    const tokens = await shop()
    const before = Date.now()
    await createGate({ tokens })('secret', 'plants:read')
    const [listed] = await tokens.list()
    expect(listed?.lastUsedAt?.getTime()).toBeGreaterThanOrEqual(before)
  })

  test('is not written down for who is refused', async () => {
    const tokens = await shop()
    const gate = createGate({ tokens })
    await expect(gate('secret', 'plants:write')).rejects.toMatchObject({ code: 'insufficient-scope' })
    await expect(gate('guess', 'plants:read')).rejects.toMatchObject({ code: 'invalid-token' })
    expect(await tokens.list()).toEqual([token])
  })

  test('neither delays nor fails a request', async () => {
    const tokens = await shop()
    const never = new Promise<void>(() => {})
    const failing = Promise.reject(new Error('the disk is full'))
    failing.catch(() => {})
    for (const outcome of [never, failing]) {
      const gate = createGate({ tokens: { ...tokens, markUsed: () => outcome } })
      expect(await gate('secret', 'plants:read')).toEqual(token)
      expect(await gate('secret', 'plants:read')).toEqual(token)
    }
  })
})

test.each([
  ['shop', true],
  ['Läden & Höfe (2)', true],
  ['x'.repeat(100), true],
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

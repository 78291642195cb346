import type { Version } from '@plant-store/domain'
import { beforeAll, expect, test, vi } from 'vitest'

let made: typeof import('../src/versions.ts')

// Of a module of its own, which has made no version yet.
beforeAll(async () => {
  vi.resetModules()
  made = await import('../src/versions.ts')
})

test('versions are 64 bits, each another, and survive as text', () => {
  const versions = Array.from({ length: 3_000 }, () => made.newVersion())
  expect(versions.filter(version => BigInt.asIntN(64, version) === version)).toEqual(
    versions,
  )
  expect(new Set(versions).size).toBe(versions.length)
  for (const version of [...versions, 0n, -1n, 2n ** 63n - 1n, -(2n ** 63n)]) {
    const text = made.toVersion(version)
    expect(text).toMatch(/^[0-9a-f]{16}$/)
    expect(made.fromVersion(text)).toBe(version)
  }
})

test.each([
  '',
  '0'.repeat(15),
  '0'.repeat(17),
  `x${'0'.repeat(16)}`,
  `${'0'.repeat(16)}x`,
  'A'.repeat(16),
])('%j is no version, and equals none', text => {
  expect(made.fromVersion(text as Version)).toBeNull()
})

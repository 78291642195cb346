import type { Version } from '@plant-store/domain'
import { beforeAll, expect, test, vi } from 'vitest'

let plants: typeof import('../src/plants/tables.ts')

// Of a module of its own, which has made no version yet.
beforeAll(async () => {
  vi.resetModules()
  plants = await import('../src/plants/tables.ts')
})

test('versions are 64 bits, each another, and survive as text', () => {
  const versions = Array.from({ length: 3_000 }, () => plants.newVersion())
  expect(versions.filter(version => BigInt.asIntN(64, version) === version)).toEqual(versions)
  expect(new Set(versions).size).toBe(versions.length)
  for (const version of [...versions, 0n, -1n, 2n ** 63n - 1n, -(2n ** 63n)]) {
    const text = plants.toVersion(version)
    expect(text).toMatch(/^[0-9a-f]{16}$/)
    expect(plants.fromVersion(text)).toBe(version)
  }
})

test.each(['', '0'.repeat(15), '0'.repeat(17), `x${'0'.repeat(16)}`, `${'0'.repeat(16)}x`, 'A'.repeat(16)])(
  '%j is no version, and equals none',
  text => {
    expect(plants.fromVersion(text as Version)).toBeNull()
  },
)

import type { Version } from '@plant-store/domain'
import { expect, test } from 'vitest'
import { fromVersion, newVersion, toVersion } from '../src/versions.ts'

test('each of many versions is another, and fits into 64 bits', () => {
  const versions = Array.from({ length: 3_000 }, () => newVersion())

  expect(new Set(versions).size).toBe(versions.length)
  expect(versions.map(version => BigInt.asIntN(64, version))).toEqual(versions)
})

test.each([
  [0n, '0000000000000000'],
  [1n, '0000000000000001'],
  [-1n, 'ffffffffffffffff'],
  [9_223_372_036_854_775_807n, '7fffffffffffffff'],
  [-9_223_372_036_854_775_808n, '8000000000000000'],
])('version %s is the text %s, and back', (version, text) => {
  expect(toVersion(version)).toBe(text)
  expect(fromVersion(toVersion(version))).toBe(version)
})

test.each(
  Object.entries({
    'an empty text': '',
    'one digit less': '0'.repeat(15),
    'one digit more': '0'.repeat(17),
    'a letter before it': `x${'0'.repeat(16)}`,
    'a letter behind it': `${'0'.repeat(16)}x`,
    capitals: 'A'.repeat(16),
  }),
)('%s is no version, and equals none', (_, text) => {
  expect(fromVersion(text as Version)).toBeNull()
})

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

test.each([
  { what: 'an empty text', text: '' },
  { what: 'one digit less', text: '0'.repeat(15) },
  { what: 'one digit more', text: '0'.repeat(17) },
  { what: 'a letter before it', text: `x${'0'.repeat(16)}` },
  { what: 'a letter behind it', text: `${'0'.repeat(16)}x` },
  { what: 'capitals', text: 'A'.repeat(16) },
])('$what is no version, and equals none', ({ text }) => {
  expect(fromVersion(text as Version)).toBeNull()
})

import { parseJsonRecord } from '@plant-store/json'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { numbers } from './arbitraries.ts'
import { exactMember } from './reference-reader.ts'

/** Reads the number of a record. */
function readNumber(text: string): unknown {
  const record = parseJsonRecord(`{"id":${text}}`)
  return Object(record).id
}

test.each([
  ['-0', 0n],
  ['1 ', 1n],
  ['9007199254740993', 2n ** 53n + 1n],
  ['-9223372036854775808', -(2n ** 63n)],
  ['9.223372036854775807e18', 2n ** 63n - 1n],
  ['92233720368547758070E-1', 2n ** 63n - 1n],
  ['1e+0003', 1000n],
  ['11.0', 11n],
  ['0e999999999999', 0n],
  ['0.000e-999999999999', 0n],
  [`1${'0'.repeat(300_000)}e-300000`, 1n],
  [`0.${'0'.repeat(299_999)}1e300000`, 1n],
])('reads %.30s as the integer that it is', (source, integer) => {
  expect(readNumber(source)).toBe(integer)
})

test('random numbers of every form are read as exact decimals are', () => {
  const property = fc.property(numbers, source => {
    expect(readNumber(source), source).toBe(exactMember(source))
  })
  fc.assert(property, { numRuns: 5_000 })
})

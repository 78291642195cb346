import { parseJsonRecord } from '@plant-store/json'
import fc from 'fast-check'
import { expect, test } from 'vitest'
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

const empty = fc.constant('')
const zeros = (max: number) => fc.nat(max).map(count => '0'.repeat(count))
const digits = fc.oneof(
  fc.stringMatching(/^\d{1,25}$/),
  concat(fc.stringMatching(/^\d{0,4}$/), zeros(22), fc.stringMatching(/^\d{1,3}$/)),
  fc.bigInt(0n, 2n ** 64n).map(String),
)
const wholes = fc.oneof(
  fc.constant('0'),
  digits.map(text => text.replace(/^0+(?=.)/, '')),
)
const decimals = fc.oneof(
  digits,
  concat(digits, zeros(20)),
  concat(fc.constant('0'), zeros(24)),
)
const fractions = concat(fc.constant('.'), decimals)
const powers = concat(
  fc.constantFrom('e', 'E'),
  fc.constantFrom('', '+', '-'),
  zeros(3),
  fc.nat(60).map(String),
)
/** Every form that a number can take in RFC 8259, mostly where integers begin and end. */
const numbers = concat(
  fc.constantFrom('', '-'),
  wholes,
  fc.oneof(empty, fractions),
  fc.oneof(empty, powers),
)

function concat(...parts: readonly fc.Arbitrary<string>[]): fc.Arbitrary<string> {
  return fc.tuple(...parts).map(texts => texts.join(''))
}

test('agrees with exact decimals on random numbers of every form', () => {
  let integers = 0
  const property = fc.property(numbers, source => {
    const exact = exactMember(source)
    if (typeof exact === 'bigint') {
      integers++
    }
    expect(readNumber(source)).toBe(exact)
  })
  fc.assert(property, { numRuns: 10_000 })

  expect(integers, 'integers among the samples').toBeGreaterThan(1_000)
})

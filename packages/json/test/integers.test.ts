import { parseJsonRecord } from '@plant-store/json'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { exactMember } from './reference-reader.ts'

const read = (number: string) =>
  (parseJsonRecord(`{"id":${number}}`) as { id: unknown }).id

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
  [`1${'0'.repeat(400)}e-400`, 1n],
  [`0.${'0'.repeat(399)}1e400`, 1n],
])('reads %s as the integer that it is', (source, integer) => {
  expect(read(source)).toBe(integer)
})

test.each(['9007199254740993.5', '1e-400', '-1e19', '1e400', '1e99999999999999999999'])(
  'reads %s, no integer of at most 19 digits, as the nearest number',
  source => {
    expect(read(source)).toBe(Number(source))
  },
)

const zeros = (max: number) => fc.nat(max).map(count => '0'.repeat(count))
const digits = fc.oneof(
  fc.stringMatching(/^\d{1,25}$/),
  fc
    .tuple(fc.stringMatching(/^\d{0,4}$/), zeros(22), fc.stringMatching(/^\d{1,3}$/))
    .map(parts => parts.join('')),
  fc
    .bigInt(-(2n ** 64n), 2n ** 64n)
    .map(integer => `${integer < 0n ? -integer : integer}`),
)
/** Every form that a number can take in RFC 8259, mostly where integers begin and end. */
const numbers = fc
  .record({
    sign: fc.constantFrom('', '-'),
    whole: fc.oneof(
      fc.constant('0'),
      digits.map(text => text.replace(/^0+(?=.)/, '')),
    ),
    fraction: fc.oneof(
      fc.constant(''),
      zeros(25),
      digits,
      fc.tuple(digits, zeros(20)).map(parts => parts.join('')),
    ),
    power: fc.oneof(
      fc.constant(''),
      fc
        .tuple(
          fc.constantFrom('e', 'E'),
          fc.constantFrom('', '+', '-'),
          zeros(3),
          fc.nat(60),
        )
        .map(([e, sign, leading, size]) => `${e}${sign}${leading}${size}`),
    ),
  })
  .map(
    ({ sign, whole, fraction, power }) =>
      `${sign}${whole}${fraction && '.'}${fraction}${power}`,
  )

test('agrees with exact decimals on random numbers of every form', () => {
  let integers = 0
  fc.assert(
    fc.property(numbers, source => {
      const expected = exactMember(source)
      if (typeof expected === 'bigint') {
        integers++
      }
      expect(read(source)).toBe(expected)
    }),
    { numRuns: 10_000 },
  )
  expect(integers, 'integers among the samples').toBeGreaterThan(1_000)
})

test('only integers that are members of a record become bigints', () => {
  expect(parseJsonRecord('{"a":[1,2.5],"b":{"c":3,"d":[{"e":4}]},"f":5}')).toEqual({
    a: [1, 2.5],
    b: { c: 3, d: [{ e: 4 }] },
    f: 5n,
  })
  expect(
    parseJsonRecord('[1,{"a":2,"b":[3,4]},[5,{"a":6}],{"c":{"d":7},"e":8}]'),
  ).toEqual([1, { a: 2n, b: [3, 4] }, [5, { a: 6 }], { c: { d: 7 }, e: 8n }])
  for (const value of [7, 'a', null, true]) {
    expect(parseJsonRecord(JSON.stringify(value)), `${value}`).toBe(value)
  }
  expect(parseJsonRecord('"\\u0061"')).toBe('a')
})

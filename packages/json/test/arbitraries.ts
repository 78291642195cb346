import fc from 'fast-check'

/**
 * Any character of Unicode. The unit of fast-check for that takes seconds to get ready.
 */
export const character = fc
  .integer({ min: 0, max: 0x10ffff - 0x800 })
  .map(n => String.fromCodePoint(n < 0xd800 ? n : n + 0x800))

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
export const numbers = concat(
  fc.constantFrom('', '-'),
  wholes,
  fc.oneof(empty, fractions),
  fc.oneof(empty, powers),
)

function concat(...parts: readonly fc.Arbitrary<string>[]): fc.Arbitrary<string> {
  return fc.tuple(...parts).map(texts => texts.join(''))
}

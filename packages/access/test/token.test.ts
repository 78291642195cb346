import { hashToken, isBearerToken, mintToken, scopes } from '@plant-store/access'
import fc from 'fast-check'
import { expect, test } from 'vitest'

test('a token that is made is recognisable, travels as a bearer token and has 256 random bits', () => {
  const tokens = Array.from({ length: 1000 }, mintToken)
  for (const token of tokens) {
    expect(token).toMatch(/^plantstore_[\w-]{43}$/)
    expect(isBearerToken(token)).toBe(true)
    expect(Buffer.from(token.slice('plantstore_'.length), 'base64url').length).toBe(32)
  }
  expect(new Set(tokens).size).toBe(1000)
})

test('the scopes have the names that tokens in stores have', () => {
  expect(scopes).toEqual(['plants:read', 'plants:write', 'metrics:read'])
})

test('every random bit of a token is set in about half of all tokens', () => {
  const count = 4000
  const set = new Array<number>(256).fill(0)
  for (let n = 0; n < count; n++) {
    const bytes = Buffer.from(mintToken().slice('plantstore_'.length), 'base64url')
    for (let bit = 0; bit < 256; bit++)
      set[bit] = (set[bit] ?? 0) + (((bytes[bit >> 3] ?? 0) >> (bit & 7)) & 1)
  }
  // Eight standard deviations: no honest generator gets there.
  const farthest = 8 * (Math.sqrt(count) / 2)
  for (const times of set) expect(Math.abs(times - count / 2)).toBeLessThan(farthest)
})

test('the hash of a token is its SHA-256 in hexadecimal', () => {
  // FIPS 180-2, appendix B.1
  expect(hashToken('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')
  expect(hashToken('')).toBe('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855')
})

test.each(['a', 'ABCxyz019', 'a-._~+/b', 'a=', 'a==', 'eyJ.eyJ.x_-', '-', '/'])(
  '%s can travel as a bearer token',
  text => {
    expect(isBearerToken(text)).toBe(true)
  },
)

test.each([
  '',
  '=',
  '=a',
  'a=b',
  'a b',
  ' a',
  'a ',
  'a\n',
  'a\r\nX: y',
  'a,b',
  'a"b',
  'ä',
  'a\0',
  'a;b',
  '🌱',
])('%j cannot travel as a bearer token', text => {
  expect(isBearerToken(text)).toBe(false)
})

test('what can travel has none of the characters that would end a header field, at random', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'aZ09-._~+/=== \n\r\t\0"\\,;:äſ🌱') }), text => {
      expect(isBearerToken(text)).toBe(text !== '' && /^[A-Za-z0-9\-._~+/]+=*$(?!\n)/.test(text))
    }),
  )
})

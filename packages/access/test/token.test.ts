import {
  hashToken,
  isBearerToken,
  isTokenName,
  mintToken,
  scopes,
} from '@plant-store/access'
import { expect, test } from 'vitest'

test('each new token has a prefix and 256 bits of its own, and may be sent', () => {
  const tokens = Array.from({ length: 100 }, mintToken)

  const wrong = tokens.filter(token => {
    const bytes = Buffer.from(token.slice('plantstore_'.length), 'base64url')
    const hasForm = /^plantstore_[\w-]{43}$/.test(token)
    return !hasForm || bytes.length !== 32 || !isBearerToken(token)
  })

  expect(wrong).toEqual([])
  expect(new Set(tokens).size).toBe(100)
})

test('the scopes have the names that tokens in stores have', () => {
  expect(scopes).toEqual(['plants:read', 'plants:write', 'metrics:read'])
})

test('the hash of a token is its SHA-256 in hexadecimal', () => {
  // FIPS 180-2, appendix B.1
  expect(hashToken('abc')).toBe(
    'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
  )
  expect(hashToken('')).toBe(
    'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  )
})

test.each(['ABCxyz019', 'a-._~+/b', 'a=='])('%j is a bearer token', text => {
  expect(isBearerToken(text)).toBe(true)
})

test.each(['', '=a', 'a=b', 'a\n', 'a\r\nX: y', 'ä', 'a b', 'a\0', '"a"', 'a,b'])(
  '%j is no bearer token',
  text => {
    expect(isBearerToken(text)).toBe(false)
  },
)

test.each(['shop', 'Läden & Höfe (2)', 'x'.repeat(100), 'x'])(
  '%j may name a token',
  name => {
    expect(isTokenName(name)).toBe(true)
  },
)

test.each([
  '',
  ' shop',
  'shop ',
  'two\nlines',
  'two\u2028lines',
  '\u001b[31mred',
  'x'.repeat(101),
])('%j names no token', name => {
  expect(isTokenName(name)).toBe(false)
})

import {
  hashToken,
  isBearerToken,
  isTokenName,
  mintToken,
  scopes,
} from '@plant-store/access'
import fc from 'fast-check'
import { expect, test } from 'vitest'

test('a token that is made is recognisable, travels as a bearer token and has 256 random bits', () => {
  const tokens = Array.from({ length: 100 }, mintToken)
  for (const token of tokens) {
    expect(token).toMatch(/^plantstore_[\w-]{43}$/)
    expect(isBearerToken(token)).toBe(true)
    expect(Buffer.from(token.slice('plantstore_'.length), 'base64url').length).toBe(32)
  }
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

test('a bearer token has none of the characters that would end a header field', () => {
  for (const text of ['ABCxyz019', 'a-._~+/b', 'a==']) {
    expect(isBearerToken(text)).toBe(true)
  }
  for (const text of ['', '=a', 'a=b', 'a\n', 'a\r\nX: y', 'ä']) {
    expect(isBearerToken(text)).toBe(false)
  }
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom(...'aZ09-._~+/=== \n\r\t\0"\\,;:äſ🌱') }),
      text => {
        expect(isBearerToken(text)).toBe(
          text !== '' && /^[A-Za-z0-9\-._~+/]+=*$(?!\n)/.test(text),
        )
      },
    ),
  )
})

test.each([
  ['shop', true],
  ['Läden & Höfe (2)', true],
  ['x'.repeat(100), true],
  ['x', true],
  ['', false],
  [' shop', false],
  ['shop ', false],
  ['two\nlines', false],
  ['two\u2028lines', false],
  ['\u001b[31mred', false],
  ['x'.repeat(101), false],
])('%j as the name of a token: %s', (name, expected) => {
  expect(isTokenName(name)).toBe(expected)
})

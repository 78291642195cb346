import { parseJwksUrl } from '@plant-store/jwt/settings'
import { describe, expect, test } from 'vitest'

describe('the place of the keys', () => {
  test.each([
    'https://identity.example/jwks',
    'http://localhost:8080/jwks',
    'http://127.12.34.56/jwks',
    'http://[::1]:8080/jwks',
  ])('%s is taken', text => {
    expect(parseJwksUrl(text).href).toBe(text)
  })

  test.each([
    'identity',
    'file:///etc/passwd',
    'http://identity.example/jwks',
    'http://localhost.example/jwks',
    'http://127.0.0.1.example/jwks',
    'https://a@identity.example/jwks',
    'http://a:b@localhost/jwks',
  ])('%s is refused', text => {
    expect(() => parseJwksUrl(text)).toThrow(/^must be an https URL/)
  })
})

/**
 * Separate from the gate, so that a program can read its settings without loading jose.
 */

/**
 * Public-key algorithms only: a key that verifies tokens must not be able to sign them.
 */
export const jwtAlgorithms = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
] as const
export type JwtAlgorithm = (typeof jwtAlgorithms)[number]

/**
 * Returns the URL of a provider's keys: https, or http on this machine. An attacker who
 * can change the keys in transit can sign tokens.
 *
 * @throws TypeError
 */
export function parseJwksUrl(text: string): URL {
  const url = URL.parse(text)
  if (
    url === null ||
    !(url.protocol === 'https:' || isLocal(url)) ||
    url.username ||
    url.password
  ) {
    throw new TypeError(
      'must be an https URL without credentials, or http on localhost or 127.0.0.1',
    )
  }
  return url
}

const isLocal = ({ protocol, hostname }: URL) =>
  protocol === 'http:' && /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname)

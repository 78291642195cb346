/** What a program needs to read its settings: without jose, which it may not need at all. */

/** Those with a public key, so that nobody who can check a token can make one. */
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
 * Checks where the keys of an identity provider are: at an https URL, or at an http URL of this machine. Who can change
 * the keys on their way can make tokens.
 *
 * @throws TypeError
 */
export function parseJwksUrl(text: string): URL {
  const url = URL.parse(text)
  if (url === null || !(url.protocol === 'https:' || isLocal(url)) || url.username || url.password) {
    throw new TypeError('must be an https URL without credentials; http is for localhost and 127.0.0.1 alone')
  }
  return url
}

const isLocal = ({ protocol, hostname }: URL) =>
  protocol === 'http:' && /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname)

import { AccessError } from '@plant-store/access'
import { decodeJwt, decodeProtectedHeader, errors, type JWTPayload } from 'jose'

/** @param holder the subject of a token whose signature is right */
export function invalidToken(message: string, holder?: string): AccessError {
  return new AccessError('invalid-token', message, undefined, holder)
}

/** Returns the refusal of a token in which the verifier found a fault. */
export function refusalOf(error: errors.JOSEError): AccessError {
  const isOfClaim =
    error instanceof errors.JWTExpired || error instanceof errors.JWTClaimValidationFailed
  // Anybody can write a subject into a forged token, so it counts only if the signature
  // is right. jose judges claims only after the signature.
  const payload: JWTPayload = isOfClaim ? error.payload : {}
  const holder = typeof payload.sub === 'string' ? payload.sub : undefined
  if (error instanceof errors.JWTExpired) {
    return invalidToken('the access token has expired', holder)
  }
  return invalidToken(`the access token is not valid: ${faultOf(error, payload)}`, holder)
}

function faultOf(error: errors.JOSEError, payload: JWTPayload) {
  if (error instanceof errors.JWKSNoMatchingKey) {
    return 'no key of the identity provider fits its header'
  }
  const isWrongClaim =
    error instanceof errors.JWTClaimValidationFailed && error.reason === 'check_failed'
  if (isWrongClaim && error.claim === 'aud') {
    return `its claim "aud" is ${quoted(payload.aud)}, which names no audience of this store`
  }
  if (isWrongClaim && error.claim === 'nbf') {
    return 'its claim "nbf" is in the future'
  }
  return error.message
}

/**
 * Returns why a token is no JWT of the trusted issuer. Its signature was not checked.
 *
 * @returns undefined if it is no JWT at all
 */
export function foreignFault(token: string): string | undefined {
  const inBase64url = token.replace(/=+$/, '').replaceAll('+', '-').replaceAll('/', '_')
  if (attempt(decodeProtectedHeader, inBase64url)?.alg === undefined) {
    return undefined
  }
  if (token !== inBase64url) {
    return 'the access token is no valid JWT: base64url (RFC 7515) has no "=", "+" and "/"'
  }
  // Only an encrypted one has five parts (RFC 7516, 3.1).
  if (token.split('.').length === 5) {
    return 'the access token is an encrypted JWT: this store reads only signed ones'
  }
  const payload = attempt(decodeJwt, token)
  if (payload === undefined) {
    return 'the access token is no valid JWT: its claims cannot be read'
  }
  const { iss } = payload
  if (iss === undefined) {
    return 'the access token is not valid: it lacks the claim "iss"'
  }
  return `the access token is not valid: its claim "iss" is ${quoted(iss)}, which is not exactly the issuer that this store trusts`
}

/** Returns what a token contains, or `undefined` if it cannot be decoded. */
export function attempt<Result>(
  decode: (token: string) => Result,
  token: string,
): Result | undefined {
  try {
    return decode(token)
  } catch {
    return undefined
  }
}

const quotedLengthMax = 200

/** Returns a claim for a message. */
function quoted(claim: unknown) {
  const text = JSON.stringify(claim)
  if (text.length > quotedLengthMax) {
    return `${text.slice(0, quotedLengthMax)}…`
  }
  return text
}

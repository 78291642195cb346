import { errors, type JWTVerifyOptions, jwtVerify } from 'jose'
import type { KeySet } from './key-set.ts'
import { refusalOf } from './refusals.ts'
import type { JwtAlgorithm } from './settings.ts'

export interface VerifierOptions {
  /** Must equal the claim `iss` exactly. Not empty, which would allow any. */
  readonly issuer: string
  /** The claim `aud` must contain one of these. */
  readonly audience: string | readonly string[]
  readonly algorithms: readonly JwtAlgorithm[]
  /** The tolerated difference between the provider's clock and ours. */
  readonly clockSkewMs: number
}

/**
 * Returns a function that resolves to the claims of a token that is valid, and rejects
 * with an AccessError otherwise.
 */
export function createVerifier(keySet: KeySet, options: VerifierOptions) {
  const verifyOptions: JWTVerifyOptions = {
    issuer: options.issuer,
    audience: [options.audience].flat(),
    algorithms: [...options.algorithms],
    clockTolerance: options.clockSkewMs / 1000,
    requiredClaims: ['exp', 'sub'],
  }

  return async (token: string) => {
    try {
      const { payload } = await jwtVerify(token, keySet.find, verifyOptions).catch(
        error => verifyWithEach(error, token, verifyOptions),
      )
      return payload
    } catch (error) {
      if (error instanceof errors.JOSEError) {
        throw refusalOf(error)
      }
      throw keySet.unusable(error)
    }
  }
}

/**
 * Verifies a token with each key that fits its header, because a provider may publish a
 * key twice, or two keys with one `kid` or with none. Only a wrong signature leads to the
 * next key.
 *
 * @throws the refusal unless it says that several keys fit
 */
async function verifyWithEach(
  refusal: unknown,
  token: string,
  options: JWTVerifyOptions,
) {
  if (!(refusal instanceof errors.JWKSMultipleMatchingKeys)) {
    throw refusal
  }
  // jose leaves out keys that it cannot import.
  let failure: unknown = new Error('none of its keys that fit a token can be imported')
  for await (const key of refusal) {
    try {
      return await jwtVerify(token, key, options)
    } catch (error) {
      // A key of the provider that is too short is a TypeError.
      const isFaultOfKey =
        error instanceof errors.JWSSignatureVerificationFailed ||
        error instanceof TypeError
      if (!isFaultOfKey) {
        throw error
      }
      failure = error
    }
  }
  throw failure
}

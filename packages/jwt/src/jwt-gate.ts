import {
  AccessError,
  createTokenMemory,
  type Gate,
  type Holder,
  requireScope,
  type Scope,
  scopes,
} from '@plant-store/access'
import { decodeJwt, errors, type JWTPayload, jwtVerify } from 'jose'
import { type KeySet, type KeySetOptions, openKeySet } from './key-set.ts'
import { type JwtAlgorithm, jwtAlgorithms, parseJwksUrl } from './settings.ts'

const tokenBytesMax = 8 * 1024
const rememberedTokensMax = 1000

export interface JwtGateOptions extends KeySetOptions {
  /** Must equal the claim `iss` exactly. */
  readonly issuer: string
  /** The claim `aud` must contain one of these. */
  readonly audience: string | readonly string[]
  /** Where the provider publishes its keys: https, or http on this machine. */
  readonly jwksUrl: string
  readonly algorithms: readonly JwtAlgorithm[]
  /** Between the provider's clock and ours. */
  readonly clockSkewMs: number
  /** Checks other tokens, such as opaque ones. */
  readonly otherwise: Gate
}

interface Verified extends Holder {
  readonly scopes: readonly Scope[]
  readonly expiresAtMs: number
  /** The keys that verified the token. Newer ones may lack its key. */
  readonly keys: ReturnType<KeySet['current']>
}

/**
 * Returns a gate that admits the JWTs (RFC 7519) of an identity provider that are signed for the audience. Their scopes
 * are those of the claim `permissions`, or of `scope` if there is none. Begins to fetch the provider's keys.
 *
 * @throws TypeError if the options are unsafe
 */
export function createJwtGate(options: JwtGateOptions): Gate {
  const { issuer, algorithms, otherwise } = options
  const audience = [options.audience].flat()
  if (
    algorithms.length === 0 ||
    !algorithms.every(each => jwtAlgorithms.includes(each))
  ) {
    throw new TypeError(`algorithms must contain only ${jwtAlgorithms.join(', ')}`)
  }
  if (issuer === '' || audience.length === 0 || audience.includes('')) {
    throw new TypeError('issuer and audience must not be empty')
  }
  const keySet = openKeySet(parseJwksUrl(options.jwksUrl), options)
  const verifyOptions = {
    issuer,
    audience,
    algorithms: [...algorithms],
    clockTolerance: options.clockSkewMs / 1000,
    requiredClaims: ['exp', 'sub'],
  }
  const remembered = createTokenMemory<Verified>(rememberedTokensMax)

  const verify = async (token: string, scope: Scope) => {
    remembered.delete(token)
    const keys = keySet.current()
    const { payload } = await jwtVerify(token, keySet.find, verifyOptions).catch(
      error => {
        throw refusalOf(error, keySet)
      },
    )
    const verified = { ...toHolder(payload), keys }
    // It may have been verified with older keys.
    if (keys !== undefined && keys === keySet.current()) {
      remembered.set(token, verified)
    }
    return requireScope(verified, scope)
  }

  return (credentials, scope) => {
    const { token } = credentials
    if (token === undefined) {
      return otherwise(credentials, scope)
    }
    const known = remembered.get(token)
    if (
      known !== undefined &&
      Date.now() < known.expiresAtMs &&
      known.keys === keySet.current()
    ) {
      return requireScope(known, scope)
    }
    return issuerOf(token) === issuer
      ? verify(token, scope)
      : otherwise(credentials, scope)
  }
}

const invalid = (message: string, holder?: string) =>
  new AccessError('invalid-token', message, undefined, holder)

/** Returns the issuer that a token claims, to choose the gate that checks it. */
function issuerOf(token: string): string | undefined {
  if (!/^[\w-]+\.[\w-]+\.[\w-]*$/.test(token)) {
    return undefined
  }
  if (token.length > tokenBytesMax) {
    throw invalid(`the access token is longer than ${tokenBytesMax} bytes`)
  }
  try {
    return decodeJwt(token).iss
  } catch {
    return undefined
  }
}

function refusalOf(error: Error, keySet: KeySet): Error {
  // jose judges claims only once the signature is right. Of a forged token the subject says nothing.
  const { sub } = 'payload' in error ? (error.payload as JWTPayload) : {}
  const holder = typeof sub === 'string' ? sub : undefined
  if (error instanceof errors.JWTExpired) {
    return invalid('the access token has expired', holder)
  }
  if (error instanceof errors.JOSEError) {
    return invalid(`the access token is not valid: ${error.message}`, holder)
  }
  // Any other error means that a key of the provider is broken or too short.
  return error instanceof AccessError ? error : keySet.fail(error)
}

function toHolder(payload: JWTPayload): Omit<Verified, 'keys'> {
  const { sub, exp } = payload
  if (typeof sub !== 'string' || sub === '') {
    throw invalid('the access token is not valid: "sub" claim must be a non-empty string')
  }
  return { name: sub, scopes: scopesOf(payload), expiresAtMs: (exp as number) * 1000 }
}

/** If a provider sets permissions, the scope is only what the client asked for. */
function scopesOf({ permissions, scope }: JWTPayload): readonly Scope[] {
  const granted =
    permissions ?? (typeof scope === 'string' ? scope.split(' ') : undefined)
  return Array.isArray(granted) ? scopes.filter(each => granted.includes(each)) : []
}

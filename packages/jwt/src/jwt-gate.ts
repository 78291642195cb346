import {
  AccessError,
  createTokenMemory,
  type Gate,
  type Holder,
  type Scope,
} from '@plant-store/access'
import { decodeJwt } from 'jose'
import { type Grant, grantOf } from './grant.ts'
import { type KeySetOptions, openKeySet } from './key-set.ts'
import { attempt, foreignFault, invalidToken } from './refusals.ts'
import { createVerifier, type VerifierOptions } from './verifier.ts'

const tokenBytesMax = 8 * 1024
const rememberedTokensMax = 1000

export interface JwtGateOptions extends KeySetOptions, VerifierOptions {
  /** Where the provider publishes its keys. `parseJwksUrl` has judged it. */
  readonly jwksUrl: string
  /** Checks other tokens, such as opaque ones. */
  readonly otherwise: Gate
}

interface VerifiedToken {
  readonly grant: Grant
  /** The keys that verified the token. Newer ones may lack its key. */
  readonly keys: object
}

/**
 * Returns a gate that admits the JWTs (RFC 7519) of an identity provider that are signed
 * for the audience. Their scopes are those of the claim `permissions`, or of `scope` if
 * there is none. Begins to fetch the provider's keys.
 */
export function createJwtGate(options: JwtGateOptions): Gate {
  const { issuer, otherwise } = options
  const keySet = openKeySet(new URL(options.jwksUrl), options)
  const verify = createVerifier(keySet, options)
  const remembered = createTokenMemory<VerifiedToken>(rememberedTokensMax)

  const admitOnceVerified = async (token: string, scope: Scope): Promise<Holder> => {
    remembered.delete(token)
    const keys = keySet.current()
    const payload = await verify(token)
    const grant = grantOf(payload)

    // The keys may have been replaced since. Older ones may have verified the token.
    const areKeysCurrent = keys !== undefined && keys === keySet.current()
    if (areKeysCurrent) {
      remembered.set(token, { grant, keys })
    }
    return admit(grant, scope)
  }

  return (credentials, scope) => {
    const { token } = credentials
    if (token === undefined) {
      return otherwise(credentials, scope)
    }

    const known = remembered.get(token)
    const isStillVerified =
      known !== undefined &&
      Date.now() < known.grant.expiresAtMs &&
      known.keys === keySet.current()
    if (isStillVerified) {
      return admit(known.grant, scope)
    }

    if (issuerOf(token) === issuer) {
      return admitOnceVerified(token, scope)
    }
    return explainRefusal(token, () => otherwise(credentials, scope))
  }
}

function admit({ holder, scopes, source }: Grant, scope: Scope): Holder {
  if (scopes.includes(scope)) {
    return holder
  }
  const message = `the access token lacks the scope ${scope}: ${source}`
  throw new AccessError('insufficient-scope', message, scope, holder.name)
}

/** Returns the issuer that a token claims, to choose the gate that checks it. */
function issuerOf(token: string): string | undefined {
  if (!/^[\w-]+\.[\w-]+\.[\w-]*$/.test(token)) {
    return undefined
  }
  if (token.length > tokenBytesMax) {
    throw invalidToken(`the access token is longer than ${tokenBytesMax} bytes`)
  }
  return attempt(decodeJwt, token)?.iss
}

/**
 * Runs the other gate. If it does not know a JWT, the refusal says what is wrong with the
 * JWT.
 */
function explainRefusal(token: string, run: () => ReturnType<Gate>): ReturnType<Gate> {
  const explain = (error: unknown): never => {
    const isUnknown = error instanceof AccessError && error.code === 'invalid-token'
    // The other gate knew the holder, so its own words are right.
    if (!isUnknown || error.holder !== undefined) {
      throw error
    }
    const fault = foreignFault(token)
    throw fault === undefined ? error : invalidToken(fault)
  }
  try {
    const admission = run()
    return admission instanceof Promise ? admission.catch(explain) : admission
  } catch (error) {
    return explain(error)
  }
}

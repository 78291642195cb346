import type { Scope } from './scopes.ts'
import {
  type AccessToken,
  hashToken,
  isExpired,
  type TokenHash,
  type TokenRepository,
} from './token.ts'
import { createTokenMemory } from './token-memory.ts'

/** `access-unavailable` is temporary: the same request may be admitted later. */
export type AccessErrorCode =
  | 'no-token'
  | 'invalid-token'
  | 'insufficient-scope'
  | 'access-unavailable'

export class AccessError extends Error {
  override readonly name = 'AccessError'
  readonly code: AccessErrorCode
  /** The missing scope. */
  readonly scope: Scope | undefined
  /** The name of the refused holder, if it is known. For the log, not for the client. */
  readonly holder: string | undefined

  constructor(code: AccessErrorCode, message: string, scope?: Scope, holder?: string) {
    super(message)
    this.code = code
    this.scope = scope
    this.holder = holder
  }
}

export interface Holder {
  /** The name for people and logs. */
  readonly name: string
  /** An error has a name, too. A gate that returns one does not compile. */
  readonly message?: never
}

export interface Credentials {
  /** The bearer token of the Authorization field (RFC 6750, 2.1). */
  readonly token: string | undefined
  /** Names in lower case. A client can send any field that no proxy sets or removes. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
}

/**
 * Admits credentials for a scope and returns their holder. This is the port for every way
 * to check credentials. A gate that already knows the credentials returns without a
 * promise, which is cheaper.
 *
 * @throws AccessError, or rejects with it
 */
export type Gate = (credentials: Credentials, scope: Scope) => Holder | Promise<Holder>

/** A gate that reads only the token. */
type TokenGate = (
  credentials: Pick<Credentials, 'token'>,
  scope: Scope,
) => ReturnType<Gate>

/**
 * How long a token is admitted without another lookup. A revoked token works no longer
 * than this.
 */
const recheckAfterMs = 2000
const rememberedTokensMax = 10_000
/** The least time between two records of a token's use. */
const markUsedEveryMs = 60_000

/** A token that was found in the store, and when. */
interface Known {
  readonly hash: TokenHash
  readonly token: AccessToken
  readonly foundAtMs: number
  markedAtMs: number
}

export function createGate(
  tokens: Pick<TokenRepository, 'find' | 'markUsed'>,
): TokenGate {
  const remembered = createTokenMemory<Known>(rememberedTokensMax)

  async function lookUp(presented: string, scope: Scope) {
    const foundAtMs = performance.now()
    const hash = hashToken(presented)
    const token = await tokens.find(hash)
    const before = remembered.get(presented)
    if (token === undefined) {
      throw refuseUnknown(presented, before)
    }

    const markedAtMs = before?.markedAtMs ?? Number.NEGATIVE_INFINITY
    const known = { hash, token, foundAtMs, markedAtMs }
    remembered.set(presented, known)
    return admit(known, foundAtMs, scope)
  }

  function refuseUnknown(presented: string, before: Known | undefined) {
    if (before !== undefined) {
      // A revoked token stays remembered for the name of its holder. It is looked up each
      // time from now on.
      remembered.set(presented, { ...before, foundAtMs: Number.NEGATIVE_INFINITY })
    }
    const message = 'the access token is unknown or was revoked'
    return new AccessError('invalid-token', message, undefined, before?.token.name)
  }

  function admit(known: Known, nowMs: number, scope: Scope) {
    const { token } = known
    if (isExpired(token)) {
      const message = 'the access token has expired'
      throw new AccessError('invalid-token', message, undefined, token.name)
    }
    if (!token.scopes.includes(scope)) {
      const message = `the access token lacks the scope ${scope}`
      throw new AccessError('insufficient-scope', message, scope, token.name)
    }

    if (nowMs - known.markedAtMs >= markUsedEveryMs) {
      known.markedAtMs = nowMs
      // No request waits for this or fails with it. A request a minute later tries again.
      tokens.markUsed(known.hash, new Date()).catch(() => {})
    }
    return token
  }

  return ({ token: presented }, scope) => {
    if (presented === undefined) {
      throw new AccessError('no-token', 'an access token is required')
    }
    const known = remembered.get(presented)
    // This clock is monotonic: setting the time of day back must not keep a revoked token
    // alive.
    const nowMs = performance.now()
    const isFresh = known !== undefined && nowMs - known.foundAtMs < recheckAfterMs
    if (isFresh) {
      return admit(known, nowMs, scope)
    }
    return lookUp(presented, scope)
  }
}

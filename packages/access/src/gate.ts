import type { Scope } from './scope.ts'
import { type AccessToken, hashToken } from './token.ts'
import type { TokenRepository } from './token-repository.ts'

export type AccessErrorCode = 'no-token' | 'invalid-token' | 'insufficient-scope'

export class AccessError extends Error {
  override readonly name = 'AccessError'
  readonly code: AccessErrorCode
  /** The scope that was lacking. */
  readonly scope: Scope | undefined

  constructor(code: AccessErrorCode, message: string, scope?: Scope) {
    super(message)
    this.code = code
    this.scope = scope
  }
}

/** Who was admitted. */
export interface Holder {
  /** Names the holder to people and in logs. */
  readonly name: string
}

/**
 * Admits who presents a token with a scope, and tells who it is: the port that any way of checking tokens can fill.
 * Whoever knows the token already answers without waiting, so that a busy server isn't slowed by its own door.
 *
 * @throws AccessError, or rejects with it
 */
export type Gate = (token: string | undefined, scope: Scope) => Holder | Promise<Holder>

export interface GateOptions {
  readonly tokens: Pick<TokenRepository, 'find'>
  /** For how long a token that was found is admitted without looking again: a revoked one works no longer than that. */
  readonly recheckAfterMs?: number
  readonly rememberedTokensMax?: number
}

export function createGate({
  tokens,
  recheckAfterMs = 2000,
  rememberedTokensMax = 10_000,
}: GateOptions): Gate {
  // By the token itself: hashing it for every request would cost as much as reading the request's body. Which token was
  // presented can't be measured here, as texts are compared only once their hashes, seeded by V8 at start, are equal.
  const remembered = new Map<string, { readonly token: AccessToken; readonly foundAtMs: number }>()

  const lookUp = async (presented: string, scope: Scope) => {
    const foundAtMs = performance.now()
    const token = await tokens.find(hashToken(presented))
    remembered.delete(presented)
    if (token !== undefined) {
      const [oldest] = remembered.keys()
      if (remembered.size >= rememberedTokensMax && oldest !== undefined) remembered.delete(oldest)
      remembered.set(presented, { token, foundAtMs })
    }
    return admit(token, scope)
  }

  return (presented, scope) => {
    if (presented === undefined) throw new AccessError('no-token', 'an access token is required')
    const known = remembered.get(presented)
    // A monotonic clock: setting the time back must not keep a revoked token alive.
    return known !== undefined && performance.now() - known.foundAtMs < recheckAfterMs
      ? admit(known.token, scope)
      : lookUp(presented, scope)
  }
}

function admit(token: AccessToken | undefined, scope: Scope): AccessToken {
  if (token === undefined)
    throw new AccessError('invalid-token', 'the access token is unknown or was revoked')
  if (token.expiresAt !== undefined && token.expiresAt.getTime() <= Date.now()) {
    throw new AccessError('invalid-token', 'the access token has expired')
  }
  if (!token.scopes.includes(scope)) {
    throw new AccessError('insufficient-scope', `the access token lacks the scope ${scope}`, scope)
  }
  return token
}

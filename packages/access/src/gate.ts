import { type AccessToken, hashToken, type Scope, type TokenHash } from './token.ts'
import type { TokenRepository } from './token-repository.ts'

/** The last one says "not now" instead of "no": the same request may be admitted later. */
export type AccessErrorCode = 'no-token' | 'invalid-token' | 'insufficient-scope' | 'access-unavailable'

const brand = Symbol.for('@plant-store/access AccessError')

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

  static {
    Object.defineProperty(AccessError.prototype, brand, { value: true })
  }
}

/** Returns whether this is an {@link AccessError} of any copy of this package: `instanceof` knows only its own copy's. */
export function isAccessError(error: unknown): error is AccessError {
  return (error as { [brand]?: unknown } | null | undefined)?.[brand] === true
}

/** Who was admitted. */
export interface Holder {
  /** Names the holder to people and in logs. */
  readonly name: string
}

/** What a request shows of the client that sent it. */
export interface Credentials {
  /** The bearer token in the header field Authorization (RFC 6750, 2.1). */
  readonly token: string | undefined
  /** By names in lower case. A client sends what it likes, unless a proxy sets or removes the field. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  /** The client's certificate in DER, where TLS asked for one and found it valid. */
  readonly certificate: Uint8Array | undefined
}

/**
 * Admits a client to what needs this scope and returns the holder: the port for any way of checking credentials. A gate
 * that knows them already returns without a promise, which costs a busy server less.
 *
 * @throws AccessError, or rejects with it
 */
export type Gate = (credentials: Credentials, scope: Scope) => Holder | Promise<Holder>

/** A gate that looks at nothing but the token. */
type TokenGate = (credentials: Pick<Credentials, 'token'>, scope: Scope) => ReturnType<Gate>

export interface GateOptions {
  readonly tokens: Pick<TokenRepository, 'find' | 'markUsed'>
  /** For how long a token is admitted without looking it up again: a revoked one works no longer. */
  readonly recheckAfterMs?: number
  readonly rememberedTokensMax?: number
  /** The shortest time between two records of the use of a token. */
  readonly markUsedEveryMs?: number
}

interface Remembered {
  readonly hash: TokenHash
  readonly token: AccessToken
  readonly foundAtMs: number
  markedAtMs: number
}

export function createGate({
  tokens,
  recheckAfterMs = 2000,
  rememberedTokensMax = 10_000,
  markUsedEveryMs = 60_000,
}: GateOptions): TokenGate {
  // By the token itself: hashing it would cost each request as much as reading its body. No timing reveals a token, as
  // texts are compared only once their hashes, seeded by V8 at start, are equal.
  const remembered = new Map<string, Remembered>()

  const lookUp = async (presented: string, scope: Scope) => {
    const foundAtMs = performance.now()
    const hash = hashToken(presented)
    const token = await tokens.find(hash)
    const markedAtMs = remembered.get(presented)?.markedAtMs ?? Number.NEGATIVE_INFINITY
    remembered.delete(presented)
    if (token === undefined) return admit(token, scope)
    const [oldest] = remembered.keys()
    if (remembered.size >= rememberedTokensMax && oldest !== undefined) remembered.delete(oldest)
    const found = { hash, token, foundAtMs, markedAtMs }
    remembered.set(presented, found)
    return admitKnown(found, foundAtMs, scope)
  }

  const admitKnown = (known: Remembered, nowMs: number, scope: Scope) => {
    const token = admit(known.token, scope)
    if (nowMs - known.markedAtMs >= markUsedEveryMs) {
      known.markedAtMs = nowMs
      // No request waits for it or fails with it: the next is in a minute.
      tokens.markUsed(known.hash, new Date()).catch(() => {})
    }
    return token
  }

  return ({ token: presented }, scope) => {
    if (presented === undefined) throw new AccessError('no-token', 'an access token is required')
    const known = remembered.get(presented)
    // A monotonic clock: setting the time back must not keep a revoked token alive.
    const nowMs = performance.now()
    return known !== undefined && nowMs - known.foundAtMs < recheckAfterMs
      ? admitKnown(known, nowMs, scope)
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

import { type Holder, type Scope, scopes } from '@plant-store/access'
import type { JWTPayload } from 'jose'
import { invalidToken } from './refusals.ts'

/** The holder and the scopes of a verified token. */
export interface Grant {
  readonly holder: Holder
  readonly scopes: readonly Scope[]
  /** Says from which claim the scopes are, for the client of a token that lacks one. */
  readonly source: string
  readonly expiresAtMs: number
}

/** @throws AccessError if the subject is no text, or empty */
export function grantOf(payload: JWTPayload): Grant {
  const { sub, exp } = payload
  if (typeof sub !== 'string' || sub === '') {
    throw invalidToken(
      'the access token is not valid: "sub" claim must be a non-empty string',
    )
  }
  // The verifier requires the claim `exp`, as a number.
  const expiresAtMs = Number(exp) * 1000
  const [granted, source] = grantedIn(payload)
  return {
    holder: { name: sub },
    scopes: scopes.filter(scope => granted.includes(scope)),
    source,
    expiresAtMs,
  }
}

/**
 * Returns what the claim of the scopes grants, and the `source` of a grant. If a provider
 * sets permissions, the scope is only what the client asked for.
 */
function grantedIn({
  permissions,
  scope,
  scp,
}: JWTPayload): readonly [granted: readonly unknown[], source: string] {
  if (Array.isArray(permissions)) {
    return [permissions, 'its scopes are those of the claim "permissions"']
  }
  if (isGiven(permissions)) {
    return [[], 'its claim "permissions" must be a list of texts']
  }
  if (typeof scope === 'string') {
    return [scope.split(' '), 'its claim "scope" has other words']
  }
  if (isGiven(scope)) {
    return [
      [],
      'its claim "scope" must be a text, with a space between two scopes (RFC 8693)',
    ]
  }
  const source =
    'scopes are read from its claim "permissions" or "scope", and it has none'
  return [[], scp === undefined ? source : `${source}: "scp" is not read`]
}

function isGiven(claim: unknown) {
  return claim !== undefined && claim !== null
}

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
  return { holder: { name: sub }, expiresAtMs, ...scopesOf(payload) }
}

/** If a provider sets permissions, the scope is only what the client asked for. */
function scopesOf(payload: JWTPayload): Pick<Grant, 'scopes' | 'source'> {
  const { permissions, scope } = payload
  const hasPermissions = permissions !== undefined && permissions !== null
  if (hasPermissions && !Array.isArray(permissions)) {
    return { scopes: [], source: 'its claim "permissions" must be a list of texts' }
  }
  if (hasPermissions) {
    const source = 'its scopes are those of the claim "permissions"'
    return { scopes: known(permissions), source }
  }
  if (typeof scope === 'string') {
    return {
      scopes: known(scope.split(' ')),
      source: 'its claim "scope" has other words',
    }
  }
  if (scope !== undefined && scope !== null) {
    const source =
      'its claim "scope" must be a text, with a space between two scopes (RFC 8693)'
    return { scopes: [], source }
  }
  const source =
    'scopes are read from its claim "permissions" or "scope", and it has none'
  if (payload['scp'] !== undefined) {
    return { scopes: [], source: `${source}: "scp" is not read` }
  }
  return { scopes: [], source }
}

function known(granted: readonly unknown[]): readonly Scope[] {
  return scopes.filter(scope => granted.includes(scope))
}

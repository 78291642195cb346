import { hash, randomBytes } from 'node:crypto'
import type { Scope } from './scopes.ts'

/** An access token as the store keeps it: everything but the token itself. */
export interface AccessToken {
  /** The holder's name for people and logs, unique. */
  readonly name: string
  readonly scopes: readonly Scope[]
  readonly createdAt: Date
  /** The token is invalid from this moment on. Absent if it does not expire. */
  readonly expiresAt?: Date
  /** Accurate to about a minute. Absent if the token was never used. */
  readonly lastUsedAt?: Date
}

const tokenNameMax = 100

/**
 * Returns whether a text can name a token: 1 to 100 printable characters on one line,
 * without spaces at the ends.
 */
export function isTokenName(text: string): boolean {
  return (
    text.length <= tokenNameMax &&
    /^[^\s\p{C}](?:[^\p{C}\p{Zl}\p{Zp}]*[^\s\p{C}])?$/u.test(text)
  )
}

/** The SHA-256 of a token in hexadecimal. */
export type TokenHash = string & { readonly __brand: 'TokenHash' }

/**
 * Returns a new token: 256 random bits behind a prefix that secret scanners can
 * recognise.
 */
export function mintToken(): string {
  return `plantstore_${randomBytes(32).toString('base64url')}`
}

export function hashToken(token: string): TokenHash {
  const digits = hash('sha256', token, 'hex')
  // This is the definition of the type.
  return digits as TokenHash
}

export function isExpired({ expiresAt }: AccessToken): boolean {
  return expiresAt !== undefined && expiresAt.getTime() <= Date.now()
}

/** Returns whether a text is a bearer token in form (`b64token` of RFC 6750, 2.1). */
export function isBearerToken(text: string): boolean {
  return /^[\w.~+/-]+=*$/.test(text)
}

/**
 * The port where access tokens are stored. A resolved change is durable and visible to
 * every process on the store.
 */
export interface TokenRepository {
  find(hash: TokenHash): Promise<AccessToken | undefined>
  insert(token: AccessToken, hash: TokenHash): Promise<'inserted' | 'name-taken'>
  /** Sorted by name. */
  list(): Promise<readonly AccessToken[]>
  /** Keeps the latest time. Ignores unknown hashes. */
  markUsed(hash: TokenHash, usedAt: Date): Promise<void>
  /** Resolves to whether the token existed. */
  remove(name: string): Promise<boolean>
}

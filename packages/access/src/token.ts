import { hash, randomBytes } from 'node:crypto'

/** What a token may be used for. */
export const scopes = ['plants:read', 'plants:write', 'metrics:read'] as const
export type Scope = (typeof scopes)[number]

/** What is kept of an access token: everything but the token itself. */
export interface AccessToken {
  /** Names its holder, to people and in logs; unique. */
  readonly name: string
  readonly scopes: readonly Scope[]
  readonly createdAt: Date
  /** The moment from which it is no longer valid; absent when there is none. */
  readonly expiresAt?: Date
  /** When it last admitted someone, to a minute or so; absent when it never did. */
  readonly lastUsedAt?: Date
}

const tokenNameMax = 100

/** Whether text can name a token in a list and in a log: up to 100 characters on one line, no blanks around them. */
export function isTokenName(text: string): boolean {
  return text.length <= tokenNameMax && /^[^\s\p{C}](?:[^\p{C}\p{Zl}\p{Zp}]*[^\s\p{C}])?$/u.test(text)
}

/** The SHA-256 of a token in hexadecimal: all that a store ever learns of it. */
export type TokenHash = string & { readonly __brand: 'TokenHash' }

/** Makes a token that can't be guessed (256 random bits) and is recognised when it turns up where it shouldn't. */
export function mintToken(): string {
  return `plantstore_${randomBytes(32).toString('base64url')}`
}

export function hashToken(token: string): TokenHash {
  return hash('sha256', token, 'hex') as TokenHash
}

/** Whether text can travel as a bearer token at all (`b64token` of RFC 6750, 2.1). */
export function isBearerToken(text: string): boolean {
  return /^[\w.~+/-]+=*$/.test(text)
}

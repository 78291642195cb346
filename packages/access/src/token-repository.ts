import type { AccessToken, TokenHash } from './token.ts'

/** The port where access tokens are stored. A resolved change is durable and visible to every process on the store. */
export interface TokenRepository {
  find(hash: TokenHash): Promise<AccessToken | undefined>
  insert(token: AccessToken, hash: TokenHash): Promise<'inserted' | 'name-taken'>
  /** Sorted by name. */
  list(): Promise<readonly AccessToken[]>
  /** The arguments of `insert` for every token, sorted by name, to move tokens to another store. */
  entries(): Promise<readonly (readonly [token: AccessToken, hash: TokenHash])[]>
  /** Keeps the latest time. Ignores unknown hashes. */
  markUsed(hash: TokenHash, usedAt: Date): Promise<void>
  /** Resolves to whether the store ever held a token, removed ones included. */
  hadAny(): Promise<boolean>
  /** Resolves to whether the token existed. */
  remove(name: string): Promise<boolean>
}

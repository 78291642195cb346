import type { AccessToken, TokenHash } from './token.ts'

/** The port where access tokens are stored. A resolved change is durable and visible to every process on the store. */
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

import type { AccessToken, TokenHash } from './token.ts'

/** Where access tokens are kept. A change that has resolved is durable and holds for every process on the store. */
export interface TokenRepository {
  find(hash: TokenHash): Promise<AccessToken | undefined>
  insert(token: AccessToken, hash: TokenHash): Promise<'inserted' | 'name-taken'>
  /** In the order of the names. */
  list(): Promise<readonly AccessToken[]>
  /** The arguments of `insert` for every token, in the order of the names: to move tokens to another store. */
  entries(): Promise<readonly (readonly [token: AccessToken, hash: TokenHash])[]>
  /** Keeps the latest of the moments given. Ignores unknown hashes. */
  markUsed(hash: TokenHash, usedAt: Date): Promise<void>
  /** Resolves to whether it ever held a token, even if all were removed since. */
  hadAny(): Promise<boolean>
  /** Resolves to whether there was such a token. */
  remove(name: string): Promise<boolean>
}

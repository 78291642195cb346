export interface TokenMemory<Known> {
  get(token: string): Known | undefined
  /** Makes the token the last to be forgotten. */
  set(token: string, known: Known): void
  delete(token: string): void
}

/**
 * Remembers what is known of tokens, and forgets the oldest beyond the maximum. The key
 * is the token itself, because hashing it would cost as much as reading the body. Map
 * compares texts only when their seeded hashes are equal, so timing reveals no token.
 */
export function createTokenMemory<Known>(tokensMax: number): TokenMemory<Known> {
  const remembered = new Map<string, Known>()
  return {
    get: token => remembered.get(token),
    set(token, known) {
      remembered.delete(token)
      const [oldest] = remembered.keys()
      if (remembered.size >= tokensMax && oldest !== undefined) {
        remembered.delete(oldest)
      }
      remembered.set(token, known)
    },
    delete: token => void remembered.delete(token),
  }
}

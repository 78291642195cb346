import {
  type AccessToken,
  createGate,
  hashToken,
  mintToken,
  type Scope,
} from '@plant-store/access'

/** Returns the gate of tokens that are forgotten with the process, and adds tokens. */
export function createMemoryTokens() {
  const byHash = new Map<string, AccessToken>()
  const find = async (hash: string) => byHash.get(hash)
  return {
    gate: createGate({ find, markUsed: async () => {} }),
    add(name: string, scopes: readonly Scope[], expiry: { expiresAt?: Date } = {}) {
      const token = mintToken()
      byHash.set(hashToken(token), { name, scopes, createdAt: new Date(), ...expiry })
      return token
    },
  }
}

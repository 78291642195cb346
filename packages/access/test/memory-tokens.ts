import type { AccessToken, TokenHash, TokenRepository } from '@plant-store/access'

/** Returns tokens in memory, as a gate and its tests use them. */
export function createMemoryTokens(): TokenRepository {
  const tokens = new Map<TokenHash, AccessToken>()
  return {
    find: async hash => tokens.get(hash),
    async insert(token, hash) {
      tokens.set(hash, token)
      return 'inserted'
    },
    list: async () => [...tokens.values()],
    async markUsed(hash, usedAt) {
      const token = tokens.get(hash)
      if (token !== undefined) tokens.set(hash, { ...token, lastUsedAt: usedAt })
    },
    async remove(name) {
      const [hash] = [...tokens].find(([, token]) => token.name === name) ?? []
      return hash !== undefined && tokens.delete(hash)
    },
  }
}

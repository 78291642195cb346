import type { AccessToken, TokenHash } from '../token.ts'
import type { TokenRepository } from '../token-repository.ts'

/** Returns a repository in memory, for tests. */
export function createMemoryTokenRepository(): TokenRepository {
  const tokens = new Map<TokenHash, AccessToken>()
  let hadAny = false
  const named = (name: string) => [...tokens].find(([, token]) => token.name === name)
  const sorted = () =>
    [...tokens].map(([hash, token]) => [token, hash] as const).sort(([a], [b]) => (a.name < b.name ? -1 : 1))
  return {
    async find(hash) {
      return tokens.get(hash)
    },
    async insert(token, hash) {
      if (named(token.name) !== undefined || tokens.has(hash)) return 'name-taken'
      tokens.set(hash, token)
      hadAny = true
      return 'inserted'
    },
    list: async () => sorted().map(([token]) => token),
    entries: async () => sorted(),
    async markUsed(hash, usedAt) {
      const token = tokens.get(hash)
      if (token === undefined || (token.lastUsedAt !== undefined && token.lastUsedAt >= usedAt)) return
      tokens.set(hash, { ...token, lastUsedAt: usedAt })
    },
    hadAny: async () => hadAny,
    async remove(name) {
      const found = named(name)
      return found !== undefined && tokens.delete(found[0])
    },
  }
}

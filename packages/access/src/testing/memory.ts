import type { AccessToken, TokenHash } from '../token.ts'
import type { TokenRepository } from '../token-repository.ts'

/** A repository that forgets with the process: for tests of what stands on the port. */
export function createMemoryTokenRepository(): TokenRepository {
  const tokens = new Map<TokenHash, AccessToken>()
  const named = (name: string) => [...tokens].find(([, token]) => token.name === name)
  return {
    async find(hash) {
      return tokens.get(hash)
    },
    async insert(token, hash) {
      if (named(token.name) !== undefined) return 'name-taken'
      tokens.set(hash, token)
      return 'inserted'
    },
    async list() {
      return [...tokens.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
    },
    async markUsed(hash, usedAt) {
      const token = tokens.get(hash)
      if (token === undefined || (token.lastUsedAt !== undefined && token.lastUsedAt >= usedAt)) return
      tokens.set(hash, { ...token, lastUsedAt: usedAt })
    },
    async remove(name) {
      const found = named(name)
      return found !== undefined && tokens.delete(found[0])
    },
  }
}

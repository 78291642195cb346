import { type AccessToken, hashToken, type TokenRepository } from '@plant-store/access'
import { createMemoryTokenRepository, tokenRepositoryContract } from '@plant-store/access/testing'
import { describe, expect, test } from 'vitest'

describe('the repository in memory keeps the contract', () => {
  test.each(tokenRepositoryContract)('$name', ({ run }) => run(createMemoryTokenRepository()))
})

type Break = (right: TokenRepository) => Partial<TokenRepository>
const storing =
  (change: (token: AccessToken) => AccessToken): Break =>
  right => ({ insert: (token, hash) => right.insert(change(token), hash) })

const broken: Record<string, Break> = {
  'replaces the token of a taken name': right => ({
    async insert(token, hash) {
      await right.remove(token.name)
      return right.insert(token, hash)
    },
  }),
  'finds the new token of a taken name': right => {
    const extra = new Map<string, AccessToken>()
    return {
      async insert(token, hash) {
        extra.set(hash, token)
        return right.insert(token, hash)
      },
      find: async hash => (await right.find(hash)) ?? extra.get(hash),
    }
  },
  'says inserted of a taken name': right => ({
    async insert(token, hash) {
      await right.insert(token, hash)
      return 'inserted'
    },
  }),
  'finds by the beginning of the hash': right => ({
    find: async hash => (await right.find(hash)) ?? (await right.list())[0],
  }),
  'finds nothing': () => ({ find: async () => undefined }),
  'keeps whole seconds': storing(token => ({
    ...token,
    createdAt: new Date(Math.floor(token.createdAt.getTime() / 1000) * 1000),
  })),
  'forgets when a token expires': storing(({ expiresAt: _, ...token }) => token),
  'lets every token expire': storing(token => ({ expiresAt: token.createdAt, ...token })),
  'keeps one scope': storing(token => ({ ...token, scopes: token.scopes.slice(0, 1) })),
  'sorts scopes backwards': storing(token => ({ ...token, scopes: token.scopes.toReversed() })),
  'makes a scope of none': storing(token => ({
    ...token,
    scopes: token.scopes.length > 0 ? token.scopes : ('' as never as AccessToken['scopes']),
  })),
  'returns entries backwards': right => ({ entries: async () => (await right.entries()).toReversed() }),
  'returns one hash for all': right => ({
    async entries() {
      const entries = await right.entries()
      return entries.map(([token]) => [token, entries[0]?.[1] as never])
    },
  }),
  'returns entries without their last use': right => ({
    entries: async () => (await right.entries()).map(([{ lastUsedAt: _, ...token }, hash]) => [token, hash]),
  }),
  'lets a token have two names': right => ({
    async insert(token, hash) {
      const outcome = await right.insert(token, hash)
      if (outcome === 'inserted' || (await right.list()).some(({ name }) => name === token.name))
        return outcome
      return 'inserted'
    },
  }),
  'lists backwards': right => ({ list: async () => (await right.list()).toReversed() }),
  'lists in the order of insertion': right => {
    const order: string[] = []
    return {
      insert(token, hash) {
        order.push(token.name)
        return right.insert(token, hash)
      },
      list: async () =>
        (await right.list()).toSorted((a, b) => order.indexOf(a.name) - order.indexOf(b.name)),
    }
  },
  'finds what was removed': right => {
    const seen = new Map<string, AccessToken>()
    return {
      async find(hash) {
        const found = (await right.find(hash)) ?? seen.get(hash)
        if (found !== undefined) seen.set(hash, found)
        return found
      },
      async remove(name) {
        for (const [hash, token] of seen) if (token.name !== name) seen.delete(hash)
        return right.remove(name)
      },
      async insert(token, hash) {
        const outcome = await right.insert(token, hash)
        if (outcome === 'inserted') seen.set(hash, token)
        return outcome
      },
    }
  },
  'knows only the tokens that it has': right => ({ hadAny: async () => (await right.list()).length > 0 }),
  'takes a removal of nothing for a token': right => {
    let removed = false
    return {
      async remove(name) {
        removed = true
        return right.remove(name)
      },
      hadAny: async () => removed || (await right.hadAny()),
    }
  },
  'always says that it removed': right => ({
    async remove(name) {
      await right.remove(name)
      return true
    },
  }),
  'never keeps a use': () => ({ async markUsed() {} }),
  'keeps whole seconds of a use': right => ({
    markUsed: (hash, usedAt) => right.markUsed(hash, new Date(Math.floor(usedAt.getTime() / 1000) * 1000)),
  }),
  'keeps the first use': right => {
    const used = new Set<string>()
    return {
      async markUsed(hash, usedAt) {
        if (!used.has(hash)) await right.markUsed(hash, usedAt)
        used.add(hash)
      },
    }
  },
  'keeps the last use that it is told of': right => {
    const told = new Map<string, Date>()
    const withUse = (token: AccessToken | undefined) => {
      const lastUsedAt = token && told.get(token.name)
      return token && { ...token, ...(lastUsedAt && { lastUsedAt }) }
    }
    return {
      async markUsed(hash, usedAt) {
        const token = await right.find(hash)
        if (token !== undefined) told.set(token.name, usedAt)
      },
      find: async hash => withUse(await right.find(hash)),
      list: async () => (await right.list()).map(token => withUse(token) as AccessToken),
    }
  },
  'marks every token': right => {
    const hashes: Parameters<TokenRepository['markUsed']>[0][] = []
    return {
      insert(token, hash) {
        hashes.push(hash)
        return right.insert(token, hash)
      },
      async markUsed(_, usedAt) {
        for (const hash of hashes) await right.markUsed(hash, usedAt)
      },
    }
  },
  'never frees a name': right => {
    const names = new Set<string>()
    return {
      async insert(token, hash) {
        if (names.has(token.name)) return 'name-taken'
        names.add(token.name)
        return right.insert(token, hash)
      },
    }
  },
}

async function caught(make: Break): Promise<string[]> {
  const failed: string[] = []
  for (const { name, run } of tokenRepositoryContract) {
    const right = createMemoryTokenRepository()
    await run({ ...right, ...make(right) }).catch(() => failed.push(name))
  }
  return failed
}

describe('the contract catches a repository that', () => {
  test.each(Object.entries(broken))('%s', async (_, make) => {
    expect(await caught(make)).not.toEqual([])
  })
})

test('the contract fails nothing that only passes calls on', async () => {
  expect(await caught(right => ({ find: hash => right.find(hash) }))).toEqual([])
})

test('finds by the hash and not by the token', async () => {
  const tokens = createMemoryTokenRepository()
  await tokens.insert({ name: 'a', scopes: [], createdAt: new Date() }, hashToken('token'))
  expect(await tokens.find('token' as never)).toBeUndefined()
  expect(await tokens.find(hashToken('token'))).toMatchObject({ name: 'a' })
})

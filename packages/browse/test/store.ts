import { createGate, hashToken, mintToken, scopesByChoice } from '@plant-store/access'
import { memoryUseCases, plant } from '@plant-store/domain/testing'
import { silentLogger } from '@plant-store/harness/silent-logger'
import { createServer } from '@plant-store/http/server'
import { serverDefaults } from '@plant-store/http/testing'

/** Returns a gate, with a function that creates a token. */
function createTokens() {
  const scopesByHash = new Map<string, typeof scopesByChoice.write>()
  const createdAt = new Date()
  const gate = createGate({
    async find(hash) {
      const scopes = scopesByHash.get(hash)
      return scopes && { name: 'me', scopes, createdAt }
    },
    markUsed: async () => {},
  })
  return {
    gate,
    token(scopes = scopesByChoice.write): string {
      const minted = mintToken()
      scopesByHash.set(hashToken(minted), scopes)
      return minted
    },
  }
}

/** The real server with the page, over a repository in memory. */
export async function startStore() {
  const { gate, token } = createTokens()
  const { plants } = memoryUseCases()
  let isHeld = async () => {}
  const server = createServer({
    ...serverDefaults,
    unannounced: plants,
    plants: {
      ...plants,
      async list(query) {
        await isHeld()
        return plants.list(query)
      },
    },
    gate,
    check: async () => {},
    metrics: async () => 'plant_store_ready 1\n',
    logger: silentLogger,
    page: new URL('../dist/', import.meta.url),
  })
  const url = await server.listen({ host: '127.0.0.1', port: 0 })
  return {
    url,
    plants,
    token,
    /** Holds all lists back after so many, until the returned function is called. */
    holdListsAfter(count: number): () => void {
      const released = Promise.withResolvers<void>()
      let left = count
      isHeld = async () => {
        left--
        if (left < 0) {
          await released.promise
        }
      }
      return () => {
        isHeld = async () => {}
        released.resolve()
      }
    },
    /** Removes all plants and creates these. */
    async fill(all: readonly Readonly<Parameters<typeof plant>>[]) {
      for (;;) {
        const { plants: old } = await plants.list({ limit: 1000 })
        if (old.length === 0) {
          break
        }
        for (const { id } of old) {
          await plants.remove(id)
        }
      }
      await plants.replaceAll(all.map(parts => plant(...parts)))
    },
    async [Symbol.asyncDispose]() {
      server.server.closeAllConnections()
      await server.close()
    },
  }
}

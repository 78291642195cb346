import { scopesByChoice } from '@plant-store/access'
import { memoryUseCases, plant } from '@plant-store/domain/testing'
import { createServer } from '@plant-store/http/server'
import { createMemoryTokens, serverDefaults } from '@plant-store/http/testing'

/** The real server with the page, over a repository in memory. */
export async function startStore() {
  const { gate, add } = createMemoryTokens()
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
    page: new URL('../dist/', import.meta.url),
  })
  const url = await server.listen({ host: '127.0.0.1', port: 0 })
  return {
    url,
    plants,
    token: (scopes = scopesByChoice.write) => add('me', scopes),
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

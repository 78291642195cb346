import { createServer as createProxy, request } from 'node:http'
import { buffer } from 'node:stream/consumers'
import {
  AccessError,
  createGate,
  hashToken,
  mintToken,
  scopesByChoice,
} from '@plant-store/access'
import { parsePlant } from '@plant-store/domain'
import { memoryUseCases } from '@plant-store/domain/testing'
import { listenLocally } from '@plant-store/harness'
import { silentLogger } from '@plant-store/harness/silent-logger'
import { createServer } from '@plant-store/http/server'

/** Returns a gate, with functions that create a token and let one expire. */
function createTokens() {
  const scopesByHash = new Map<string, typeof scopesByChoice.write>()
  const expired = new Set<string | undefined>()
  const createdAt = new Date()
  const gate = createGate({
    tokens: {
      async find(hash) {
        const scopes = scopesByHash.get(hash)
        return scopes && { name: 'me', scopes, createdAt }
      },
      markUsed: async () => {},
    },
  })
  return {
    // The other gate remembers an accepted token for two seconds.
    gate: ((credentials, scope) => {
      if (expired.has(credentials.token)) {
        throw new AccessError('invalid-token', 'the access token has expired')
      }
      return gate(credentials, scope)
    }) satisfies typeof gate,
    token(scopes = scopesByChoice.write): string {
      const minted = mintToken()
      scopesByHash.set(hashToken(minted), scopes)
      return minted
    },
    expire: (minted: string) => void expired.add(minted),
  }
}

/** The real server with the page, over a repository in memory. */
export async function startStore() {
  const { gate, token, expire } = createTokens()
  const { plants } = memoryUseCases()
  let isHeld = async () => {}
  const server = createServer({
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
    expire,
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
    async fill(all: readonly { id: bigint; name: string; tag?: string }[]) {
      for (;;) {
        const { plants: old } = await plants.list({ limit: 1000 })
        if (old.length === 0) {
          break
        }
        for (const { id } of old) {
          await plants.remove(id)
        }
      }
      await plants.replaceAll(all.map(each => parsePlant(each)))
    },
    async [Symbol.asyncDispose]() {
      server.server.closeAllConnections()
      await server.close()
    },
  }
}

/** The fate of a change that passes the proxy. */
export type Fate = 'passed' | 'made, but unanswered' | 'lost'

/** A proxy before the store that loses changes or their answers. */
export async function startProxy(store: string) {
  let fate: (method: string) => Fate = () => 'passed'
  const proxy = createProxy(async (incoming, outgoing) => {
    const { method = 'GET', url = '/', headers } = incoming
    const fated = fate(method)
    const body = await buffer(incoming)
    if (fated === 'lost') {
      return void incoming.socket.destroy()
    }
    const sent = request(new URL(url, store), { method, headers }, async answer => {
      const content = await buffer(answer)
      if (fated === 'passed') {
        outgoing.writeHead(answer.statusCode ?? 500, answer.headers).end(content)
      } else {
        incoming.socket.destroy()
      }
    })
    sent.end(body)
  })
  return {
    url: `http://127.0.0.1:${await listenLocally(proxy)}`,
    set fate(decide: (method: string) => Fate) {
      fate = decide
    },
    [Symbol.dispose]() {
      proxy.closeAllConnections()
      proxy.close()
    },
  }
}

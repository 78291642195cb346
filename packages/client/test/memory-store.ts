import { createGate, hashToken, mintToken, scopesByChoice } from '@plant-store/access'
import { memoryUseCases } from '@plant-store/domain/testing'
import { silentLogger } from '@plant-store/harness/silent-logger'
import { createServer } from '@plant-store/http/server'
import { serverDefaults } from '@plant-store/http/testing'

/**
 * The real server, listening on a loopback port, over repositories that forget with the
 * process.
 */
export async function startMemoryStore({ path = '' } = {}) {
  const token = mintToken()
  const scopes = scopesByChoice.write
  const storedToken = { name: 'client', scopes, createdAt: new Date() }
  const tokens = new Map([[hashToken(token), storedToken]])
  const { plants } = memoryUseCases()
  const server = createServer({
    ...serverDefaults,
    plants,
    unannounced: plants,
    gate: createGate({
      find: async hash => tokens.get(hash),
      markUsed: async () => {},
    }),
    check: async () => {},
    metrics: async () => '',
    logger: silentLogger,
    ...(path !== '' && { baseUrl: new URL(path, 'http://localhost') }),
  })
  const origin = await server.listen({ host: '127.0.0.1', port: 0 })
  return {
    baseUrl: `${origin}${path}`,
    token,
    async [Symbol.asyncDispose]() {
      // The stop would wait until clients have learnt of it.
      server.server.closeAllConnections()
      await server.close()
    },
  }
}

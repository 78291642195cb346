import { scopesByChoice } from '@plant-store/access'
import { memoryUseCases } from '@plant-store/domain/testing'
import { createServer } from '@plant-store/http/server'
import { createMemoryTokens, serverDefaults } from '@plant-store/http/testing'

/**
 * The real server, listening on a loopback port, over repositories that forget with the
 * process.
 */
export async function startMemoryStore({ path = '' } = {}) {
  const { gate, add } = createMemoryTokens()
  const { plants } = memoryUseCases()
  const server = createServer({
    ...serverDefaults,
    plants,
    unannounced: plants,
    gate,
    ...(path !== '' && { baseUrl: new URL(path, 'http://localhost') }),
  })
  const origin = await server.listen({ host: '127.0.0.1', port: 0 })
  return {
    baseUrl: `${origin}${path}`,
    token: add('client', scopesByChoice.write),
    async [Symbol.asyncDispose]() {
      // The stop would wait until clients have learnt of it.
      server.server.closeAllConnections()
      await server.close()
    },
  }
}

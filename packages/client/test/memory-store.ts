import { createGate, hashToken, mintToken, scopesByChoice } from '@plant-store/access'
import { memoryUseCases } from '@plant-store/domain/testing'
import { createServer } from '@plant-store/http/server'

/**
 * The real server, listening on a loopback port, over repositories that forget with the
 * process.
 */
export async function startMemoryStore({ path = '' } = {}) {
  const token = mintToken()
  const stored = new Map([
    [
      hashToken(token),
      { name: 'client', scopes: scopesByChoice.write, createdAt: new Date() },
    ],
  ])
  const logger = { level: 'silent', child: () => logger, ...silence }
  const { plants } = memoryUseCases()
  const server = createServer({
    plants,
    unannounced: plants,
    gate: createGate({
      tokens: { find: async hash => stored.get(hash), markUsed: async () => {} },
    }),
    check: async () => {},
    metrics: async () => '',
    logger,
    ...(path !== '' && { baseUrl: new URL(path, 'http://localhost') }),
  })
  const origin = await server.listen({ host: '127.0.0.1', port: 0 })
  return {
    ...{ baseUrl: `${origin}${path}`, token },
    async [Symbol.asyncDispose]() {
      // The stop would wait until clients have learnt of it.
      server.server.closeAllConnections()
      await server.close()
    },
  }
}

const levels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const
const silence = Object.fromEntries(levels.map(level => [level, () => {}])) as Record<
  (typeof levels)[number],
  () => void
>

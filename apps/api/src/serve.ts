import { type AccessToken, createGate, hashToken, scopes, type TokenRepository } from '@plant-store/access'
import { createPlantStore } from '@plant-store/domain'
import { createServer, type ServerLimits } from '@plant-store/http'
import type { Storage } from '@plant-store/persistence'
import type { Logger } from 'pino'
import type { Config } from './config.ts'

/** Answers requests on the storage, in this thread. */
export async function serve(config: Config, storage: Storage, logger: Logger): Promise<AsyncDisposable> {
  const server = createServer({
    store: createPlantStore({ plants: storage.plants }),
    gate: createGate({ tokens: withGivenTokens(config.accessTokens, storage.tokens) }),
    check: storage.check,
    logger,
    limits: forOneThread(config),
    trustedProxies: config.trustedProxies,
    ...(config.baseUrl && { baseUrl: new URL(config.baseUrl) }),
  })
  const { host, port, httpThreads } = config
  const address = { host, port, reusePort: httpThreads > 1 }
  await server.listen(address)
  return { [Symbol.asyncDispose]: () => server.close() }
}

/** The system spreads connections over the threads about evenly. Wrong tokens are counted by each thread for itself. */
function forOneThread({ serverLimits, httpThreads }: Config): ServerLimits {
  return { ...serverLimits, connectionsMax: Math.ceil(serverLimits.connectionsMax / httpThreads) }
}

/** Tokens that the configuration gives stand beside the stored ones, for everything, for as long as the process runs. */
function withGivenTokens(given: readonly string[], tokens: TokenRepository): Pick<TokenRepository, 'find'> {
  const byHash = new Map(
    given.map((token, index): [string, AccessToken] => [
      hashToken(token),
      { name: `ACCESS_TOKENS[${index}]`, scopes, createdAt: new Date() },
    ]),
  )
  return { find: async hash => byHash.get(hash) ?? tokens.find(hash) }
}

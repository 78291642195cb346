import {
  type AccessToken,
  createGate,
  type GateOptions,
  hashToken,
  scopes,
  type TokenRepository,
} from '@plant-store/access'
import { createPlantStore } from '@plant-store/domain'
import { createServer, drain, type ServerLimits, type ServerOptions, stopListening } from '@plant-store/http'
import type { Storage } from '@plant-store/persistence'
import type { Logger } from 'pino'
import type { Config } from './config.ts'
import type { Metrics } from './metrics.ts'

/** What is left of the time to stop in is for writing what still waits, and for closing the store. */
const drainShare = 0.8

export interface ServeSignals extends Pick<ServerOptions, 'metrics' | 'onAnswer' | 'wrongTokenCounts'> {
  readonly onConnection: Metrics['onConnection']
}

export interface Listener extends AsyncDisposable {
  /** Accepts nobody who has not connected yet. Requests are answered as before. */
  stopListening(): Promise<void>
}

/**
 * Answers requests on the storage, in this thread. Disposing of it answers those that have arrived; where one could
 * not be answered in time, the thread's exit code is 1.
 *
 * @param mayListen is asked once everything is loaded, and awaited before the first connection is accepted
 */
export async function serve(
  config: Config,
  storage: Storage,
  logger: Logger,
  { onConnection, ...signals }: ServeSignals,
  mayListen: () => Promise<void> = async () => {},
): Promise<Listener> {
  const tracing =
    config.tracesEndpoint === undefined ? undefined : (await import('./tracing.ts')).startTracing()
  const store = createPlantStore({ plants: storage.plants })
  const server = createServer({
    store: tracing?.traced(store) ?? store,
    gate: createGate({ tokens: withGivenTokens(config.accessTokens, storage.tokens) }),
    check: storage.check,
    logger,
    corsOrigins: config.corsOrigins,
    ...signals,
    ...(tracing && { traceRequest: tracing.traceRequest }),
    limits: forOneThread(config),
    trustedProxies: config.trustedProxies,
    ...(config.baseUrl && { baseUrl: new URL(config.baseUrl) }),
  })
  const { host, port, httpThreads } = config
  const address = { host, port, reusePort: httpThreads > 1 }
  server.server.on('connection', onConnection)
  await server.ready()
  await mayListen()
  await server.listen(address)
  return {
    stopListening: () => stopListening(server.server),
    async [Symbol.asyncDispose]() {
      const unanswered = await drain(server.server, config.shutdownTimeoutMs * drainShare)
      if (unanswered > 0) {
        logger.error({ connections: unanswered }, 'requests were cut before they were answered')
        process.exitCode = 1
      }
      await server.close()
      await tracing?.[Symbol.asyncDispose]()
    },
  }
}

/** The system spreads connections over the threads about evenly. */
function forOneThread({ serverLimits, httpThreads }: Config): ServerLimits {
  const { connectionsMax, heldBytesMax } = serverLimits
  return {
    ...serverLimits,
    connectionsMax: Math.ceil(connectionsMax / httpThreads),
    heldBytesMax: Math.ceil(heldBytesMax / httpThreads),
  }
}

/** Tokens that the configuration gives stand beside the stored ones, for everything, for as long as the process runs. */
function withGivenTokens(given: readonly string[], tokens: TokenRepository): GateOptions['tokens'] {
  const byHash = new Map(
    given.map((token, index): [string, AccessToken] => [
      hashToken(token),
      { name: `ACCESS_TOKENS[${index}]`, scopes, createdAt: new Date() },
    ]),
  )
  return {
    find: async hash => byHash.get(hash) ?? tokens.find(hash),
    markUsed: async (hash, usedAt) => {
      if (!byHash.has(hash)) await tokens.markUsed(hash, usedAt)
    },
  }
}

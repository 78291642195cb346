import {
  type AccessToken,
  createGate,
  type Gate,
  type GateOptions,
  hashToken,
  scopes,
  type TokenRepository,
} from '@plant-store/access'
import { createPlantStore } from '@plant-store/domain'
import { createServer, drain, type ServerLimits, stopListening } from '@plant-store/http/server'
import type { Storage } from '@plant-store/persistence'
import type { Logger } from 'pino'
import type { Config } from './config.ts'
import type { Counters } from './counters.ts'

/** The share of the shutdown timeout for draining. The rest is for pending changes and for closing the store. */
const drainShare = 0.8

export interface ThreadServer extends AsyncDisposable {
  listen(): Promise<void>
  /** Accepts no new connections. Open ones are still served. */
  stopListening(): Promise<void>
}

/**
 * Opens the HTTP server of this thread on the storage, as configured. Its disposal answers the requests that have
 * arrived. If one cannot be answered in time, the thread's exit code is 1.
 */
export async function openThreadServer(
  config: Config,
  storage: Storage,
  logger: Logger,
  { onAnswer, onConnection }: Counters,
  metrics: () => Promise<string>,
  wrongTokenCounts?: SharedArrayBuffer,
): Promise<ThreadServer> {
  const tracing =
    config.tracesEndpoint === undefined ? undefined : (await import('./opentelemetry.ts')).startTracing()
  const store = createPlantStore({ plants: storage.plants })
  const tokens = createGate({ tokens: withGivenTokens(config.accessTokens, storage.tokens) })
  const stopping = new AbortController()
  const server = createServer({
    store: tracing?.traced(store) ?? store,
    gate: config.jwt === undefined ? tokens : await withJwts(config.jwt, tokens, logger, stopping.signal),
    check: storage.check,
    logger,
    metrics,
    corsOrigins: config.corsOrigins,
    onAnswer,
    ...(tracing && { traceRequest: tracing.traceRequest }),
    ...(config.baseUrl && { baseUrl: new URL(config.baseUrl) }),
    limits: forOneThread(config),
    trustedProxies: config.trustedProxies,
    ...(wrongTokenCounts && { wrongTokenCounts }),
  })
  server.server.on('connection', onConnection)
  await server.ready()
  const { host, port, httpThreads, shutdownTimeoutMs } = config
  const address = { host, port, reusePort: httpThreads > 1 }
  return {
    listen: async () => void (await server.listen(address)),
    stopListening: () => stopListening(server.server),
    async [Symbol.asyncDispose]() {
      stopping.abort()
      const unanswered = await drain(server.server, shutdownTimeoutMs * drainShare)
      if (unanswered > 0) {
        logger.error({ connections: unanswered }, 'connections closed with a request unanswered')
        process.exitCode = 1
      }
      await server.close()
      await tracing?.[Symbol.asyncDispose]()
    },
  }
}

/** Returns one thread's share of the limits: the kernel spreads connections about evenly. */
function forOneThread({ serverLimits, httpThreads }: Config): ServerLimits {
  const { connectionsMax, heldBytesMax } = serverLimits
  return {
    ...serverLimits,
    connectionsMax: Math.ceil(connectionsMax / httpThreads),
    heldBytesMax: Math.ceil(heldBytesMax / httpThreads),
  }
}

/** Returns a gate that also admits the tokens of an identity provider. Without one, jose and `fetch` are not loaded. */
async function withJwts(
  jwt: NonNullable<Config['jwt']>,
  otherwise: Gate,
  logger: Logger,
  signal: AbortSignal,
): Promise<Gate> {
  const { createJwtGate } = await import('@plant-store/jwt')
  const { clockSkewMs, ...settings } = jwt
  const { jwksUrl } = jwt
  return createJwtGate({
    ...settings,
    limits: { clockSkewMs },
    otherwise,
    signal,
    onStateChange(state) {
      if (state.ready) logger.info({ jwksUrl }, "the identity provider's keys can be fetched again")
      else logger.error({ jwksUrl, reason: state.reason }, "the identity provider's keys cannot be fetched")
    },
  })
}

/** Returns the stored tokens and those of the configuration, which have every scope. */
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

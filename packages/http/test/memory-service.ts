import { connect, type Socket } from 'node:net'
import {
  type AccessToken,
  createGate,
  type Gate,
  hashToken,
  mintToken,
  type Scope,
  scopesByChoice,
} from '@plant-store/access'
import { createClient, createRecorder } from '@plant-store/contract'
import { createPlantUseCases, type PlantRepository } from '@plant-store/domain'
import { createMemoryPlantRepository, memoryUseCases } from '@plant-store/domain/testing'
import {
  createServer,
  defaultServerLimits,
  type RequestTracer,
  type ServerLimits,
} from '@plant-store/http/server'

export interface MemoryServiceOptions {
  /** Operations that behave otherwise than those of the repository in memory. */
  readonly plants?: Partial<PlantRepository>
  /** For plants that are not to be announced. By default `plants`. */
  readonly unannounced?: PlantRepository
  readonly check?: () => Promise<void>
  /** Instead of one that knows the tokens. */
  readonly gate?: Gate
  readonly baseUrl?: URL
  readonly limits?: Partial<ServerLimits>
  readonly host?: string
  readonly trustedProxies?: readonly string[]
  readonly wrongTokenCounts?: SharedArrayBuffer
  readonly traceRequest?: RequestTracer
  readonly corsOrigins?: readonly string[]
  readonly page?: URL
}

/** What the server logged beside its requests, from the level `info` on. */
export type Logged = readonly [level: 'info' | 'warn' | 'error' | 'fatal', message: string]

/** The log's line of a request. */
interface LoggedRequest {
  readonly reqId: string
  readonly method?: string
  readonly route?: string
  readonly status: number
  readonly ms: number
  readonly error?: number
  readonly plantId?: string
  readonly traceId?: string
}

/** The HTTP adapter on real sockets, over repositories that forget with the process. */
export async function startMemoryService(options: MemoryServiceOptions = {}) {
  const stored = new Map<string, AccessToken>()
  const token = (name: string, scopes: readonly Scope[], expiresAt?: Date) => {
    const minted = mintToken()
    const kept = { name, scopes, createdAt: new Date(), ...(expiresAt && { expiresAt }) }
    stored.set(hashToken(minted), kept)
    return minted
  }
  const { write: all, read } = scopesByChoice
  const tokens = {
    full: token('full', all),
    readOnly: token('read only', read),
    writeOnly: token(
      'write only',
      all.filter(scope => scope.endsWith(':write')),
    ),
    expired: token('expired', all, new Date(Date.now() - 1)),
    metrics: token('metrics', ['metrics:read']),
  }
  const logged: Logged[] = []
  const answered: LoggedRequest[] = []
  const debugged: unknown[] = []
  // The cases send wrong tokens by the hundred.
  const limits = { ...defaultServerLimits, wrongTokensMax: 1_000_000, ...options.limits }
  const plants = createPlants(options.plants)
  const server = createServer({
    ...memoryUseCases(),
    plants: createPlantUseCases({ plants, unannounced: options.unannounced ?? plants }),
    gate:
      options.gate ??
      createGate({ tokens: { find: async hash => stored.get(hash), markUsed: async () => {} } }),
    check: options.check ?? (async () => {}),
    logger: createLogger(logged, debugged),
    onAnswer: each => void answered.push(each as LoggedRequest),
    metrics: async () => '# HELP http_requests_total Requests\n',
    limits,
    ...(options.trustedProxies && { trustedProxies: options.trustedProxies }),
    ...(options.corsOrigins && { corsOrigins: options.corsOrigins }),
    ...(options.wrongTokenCounts && { wrongTokenCounts: options.wrongTokenCounts }),
    ...(options.traceRequest && { traceRequest: options.traceRequest }),
    ...(options.baseUrl && { baseUrl: options.baseUrl }),
    ...(options.page && { page: options.page }),
  })
  const origin = await server.listen({ host: options.host ?? '127.0.0.1', port: 0 })
  const url = `${origin}${options.baseUrl?.pathname ?? ''}`.replace(/\/$/, '')
  return {
    url,
    tokens,
    bodyBytesMax: limits.bodyBytesMax,
    headerBytesMax: limits.headerBytesMax,
    description: async () => (await fetch(`${url}/openapi.json`)).text(),
    logged: logged as readonly Logged[],
    /** The log's line of each request. */
    answered,
    /** The details of lines at the level `debug`. */
    debugged,
    server,
    async [Symbol.asyncDispose]() {
      // Otherwise each test waits for clients to learn of the stop.
      server.server.closeAllConnections()
      await server.close()
    },
  }
}

/** The service, and a client whose answers are held against the description. */
export async function startWithClient(options: MemoryServiceOptions = {}) {
  const service = await startMemoryService(options)
  const client = createClient(service, createRecorder(await service.description()))
  const { hostname, port } = new URL(service.url)
  const sockets: Socket[] = []
  service.server.server.on('connection', (socket: Socket) => sockets.push(socket))
  return {
    ...service,
    client,
    /** The server's ends of the connections that were opened since. */
    sockets: sockets as readonly Socket[],
    connect({ allowHalfOpen = false } = {}): Socket & Disposable {
      const socket = connect({ host: hostname, port: Number(port), allowHalfOpen }).on('error', () => {})
      return Object.assign(socket, { [Symbol.dispose]: () => void socket.destroy() })
    },
    async [Symbol.asyncDispose]() {
      client.close()
      await service[Symbol.asyncDispose]()
    },
  }
}

export type ServiceWithClient = Awaited<ReturnType<typeof startWithClient>>

/** A repository in memory with other operations. Who replaces `insert` replaces it for many plants too. */
export function createPlants(others: Partial<PlantRepository> = {}): PlantRepository {
  const plants: PlantRepository = {
    ...createMemoryPlantRepository(),
    insertAll: all => Promise.all(all.map(plant => plants.insert(plant))),
    ...others,
  }
  return plants
}

/** A repository whose inserts wait until they are let go. */
export function heldInserts(onInsert = () => {}) {
  const memory = createMemoryPlantRepository()
  const [begun, letGo] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const insert: PlantRepository['insert'] = async plant => {
    onInsert()
    begun.resolve()
    await letGo.promise
    return memory.insert(plant)
  }
  return { plants: { ...memory, insert }, begun: begun.promise, letGo: letGo.resolve }
}

function createLogger(logged: Logged[], debugged: unknown[]) {
  const keep =
    (level: Logged[0]) =>
    (details: unknown, message = '') => {
      const { err } = details as { err?: Error }
      logged.push([level, `${message || details}${err ? `: ${err.stack}` : ''}`])
    }
  const ignore = () => {}
  return {
    level: 'info',
    fatal: keep('fatal'),
    error: keep('error'),
    warn: keep('warn'),
    info: keep('info'),
    debug: (details: unknown) => void debugged.push(details),
    trace: ignore,
    silent: ignore,
    // As pino's inherits from it.
    child() {
      return this
    },
  }
}

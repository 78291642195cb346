import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect as openSocket, type Socket } from 'node:net'
import {
  type AccessToken,
  createGate,
  hashToken,
  mintToken,
  type Scope,
  scopesByChoice,
} from '@plant-store/access'
import { createClient, createRecorder } from '@plant-store/contract'
import { createPlantUseCases, type PlantRepository } from '@plant-store/domain'
import { createMemoryPlantRepository } from '@plant-store/domain/testing'
import {
  type AnsweredRequest,
  createServer,
  type ServerOptions,
} from '@plant-store/http/server'
import type { FastifyInstance } from 'fastify'

export interface ServiceOptions extends Partial<Omit<ServerOptions, 'plants'>> {
  /** Operations that behave otherwise than those of the repository in memory. */
  readonly plants?: Partial<PlantRepository>
  readonly host?: string
  /** Adds to the server before it listens. */
  readonly prepare?: (app: FastifyInstance) => void
}

/** A line that the server logged beside its requests, from the level `info` on. */
type Logged = readonly [level: 'info' | 'warn' | 'error' | 'fatal', message: string]

/** The log's line of a request, with the members that handlers add. */
type LoggedRequest = AnsweredRequest & {
  readonly plantId?: string
  readonly created?: number
}

export type Service = Awaited<ReturnType<typeof startService>>

const description = new URL('../../../docs/openapi.json', import.meta.url)
const recorder = createRecorder(readFileSync(description, 'utf8'))

/**
 * Starts the HTTP adapter on real sockets, over repositories that forget with the
 * process, and a client whose answers are compared with the description.
 */
export async function startService(options: ServiceOptions = {}) {
  const stored = new Map<string, AccessToken>()
  const token = (name: string, scopes: readonly Scope[], expiresAt?: Date) => {
    const minted = mintToken()
    stored.set(hashToken(minted), {
      name,
      scopes,
      createdAt: new Date(),
      ...(expiresAt && { expiresAt }),
    })
    return minted
  }
  const { write: all, read } = scopesByChoice
  const tokens = {
    full: token('full', all),
    readOnly: token('read only', read),
    writeOnly: token('write only', ['plants:write']),
    expired: token('expired', all, new Date(Date.now() - 1)),
    metrics: token('metrics', ['metrics:read']),
  }
  const logged: Logged[] = []
  const answered: LoggedRequest[] = []
  const debugged: unknown[] = []
  const { plants: others, host = '127.0.0.1', prepare, ...given } = options
  const plants = createPlants(others)
  const useCases = createPlantUseCases({ plants })
  const app = createServer({
    plants: useCases,
    unannounced: useCases,
    gate: createGate({
      tokens: { find: async hash => stored.get(hash), markUsed: async () => {} },
    }),
    check: async () => {},
    logger: createLogger(logged, debugged),
    onAnswer: each => void answered.push(each as LoggedRequest),
    metrics: async () => '# HELP http_requests_total Requests\n',
    ...given,
  })
  prepare?.(app)
  const sockets: Socket[] = []
  app.server.on('connection', socket => sockets.push(socket))
  const { origin, hostname, port } = new URL(await app.listen({ host, port: 0 }))
  const { bodyBytesMax = 2 ** 20 } = options.limits ?? {}
  const url = `${origin}${options.baseUrl?.pathname ?? ''}`.replace(/\/$/, '')
  const open = ({ allowHalfOpen = false } = {}) =>
    openSocket({ host: hostname, port: Number(port), allowHalfOpen }).on(
      'error',
      () => {},
    )
  /**
   * Opens a connection that the client does not end after the server. Returns the
   * server's end too.
   */
  const connect = async () => {
    const accepted = once(app.server, 'connection')
    const socket = open({ allowHalfOpen: true })
    const [served] = (await accepted) as [Socket]
    return { socket, served, [Symbol.dispose]: () => void socket.destroy() }
  }
  const client = createClient({ url, tokens, bodyBytesMax }, recorder)
  return {
    app,
    url,
    tokens,
    bodyBytesMax,
    plants,
    client,
    logged: logged as readonly Logged[],
    /** The log's line of each request. */
    answered: answered as readonly LoggedRequest[],
    /** The details of lines at the level `debug`. */
    debugged,
    /** The server's ends of all connections. */
    sockets: sockets as readonly Socket[],
    open,
    connect,
    /** One after the other, so that both ends belong together. */
    async connectMany(count: number) {
      const all: Awaited<ReturnType<typeof connect>>[] = []
      while (all.length < count) {
        all.push(await connect())
      }
      return all
    },
    async [Symbol.asyncDispose]() {
      client.close()
      // Cut the connections, so that no test waits for clients to learn of the stop.
      app.server.closeAllConnections()
      await app.close()
    },
  }
}

/**
 * A repository in memory with other operations. Who replaces `insert` replaces it for
 * many plants too.
 */
function createPlants(others: Partial<PlantRepository> = {}): PlantRepository {
  const plants: PlantRepository = {
    ...createMemoryPlantRepository(),
    insertAll: all => Promise.all(all.map(plant => plants.insert(plant))),
    ...others,
  }
  return plants
}

/** Returns the bytes of a GET with the token that may do everything. */
export function getRequest({ tokens }: Service, path: string): string {
  return `GET ${path} HTTP/1.1\r\nhost: h\r\nauthorization: Bearer ${tokens.full}\r\n\r\n`
}

/** Inserts that wait until they are let go, which disposal does at the latest. */
export function heldInserts(onInsert = () => {}) {
  const [begun, letGo] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const insert: PlantRepository['insert'] = async () => {
    onInsert()
    begun.resolve()
    await letGo.promise
    return 'inserted'
  }
  return {
    plants: { insert },
    begun: begun.promise,
    letGo: letGo.resolve,
    [Symbol.dispose]: letGo.resolve,
  }
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
    // A child of pino inherits from its parent. Here it is the parent.
    child() {
      return this
    },
  }
}

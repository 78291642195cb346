import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect as openSocket, type Socket } from 'node:net'
import { scopesByChoice } from '@plant-store/access'
import {
  createPlantUseCases,
  type Plant,
  type PlantRepository,
  type Version,
  type VersionedPlant,
} from '@plant-store/domain'
import { createMemoryPlantRepository } from '@plant-store/domain/testing'
import {
  type AnsweredRequest,
  createServer,
  type ServerLimits,
  type ServerOptions,
} from '@plant-store/http/server'
import {
  createClient,
  createMemoryTokens,
  createRecorder,
  serverDefaults,
} from '@plant-store/http/testing'
import type { FastifyInstance } from 'fastify'

export interface ServiceOptions
  extends Partial<Omit<ServerOptions, 'plants' | 'limits'>> {
  /** Operations that behave otherwise than those of the repository in memory. */
  readonly plants?: Partial<PlantRepository>
  /** The limits that differ from those of the program. */
  readonly limits?: Partial<ServerLimits>
  /** Adds to the server before it listens. */
  readonly prepare?: (app: FastifyInstance) => void
}

/** A line that the server logged beside its requests, above the level `debug`. */
type Logged = readonly [level: 'error', message: string]

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
  const { tokens, gate } = createTokens()
  const logged: Logged[] = []
  const answered: LoggedRequest[] = []
  const debugged: unknown[] = []
  const { plants: operations, prepare, ...serverOptions } = options
  const plants: PlantRepository = {
    ...createMemoryPlantRepository(),
    // If `insert` is replaced, many plants are inserted by it too.
    insertAll: all => Promise.all(all.map(plant => plants.insert(plant))),
    ...operations,
  }
  const useCases = createPlantUseCases({ plants })
  const limits = { ...serverDefaults.limits, ...options.limits }
  const app = createServer({
    ...serverDefaults,
    plants: useCases,
    unannounced: useCases,
    gate,
    logger: {
      error: (details, message) =>
        void logged.push(['error', `${message}: ${Object(details).err.stack}`]),
      debug: details => void debugged.push(details),
    },
    onAnswer: line => void answered.push(line),
    ...serverOptions,
    limits,
  })
  prepare?.(app)
  const sockets: Socket[] = []
  app.server.on('connection', socket => sockets.push(socket))
  const address = new URL(await app.listen({ host: '127.0.0.1', port: 0 }))
  const path = options.baseUrl?.pathname ?? ''
  const url = `${address.origin}${path}`.replace(/\/$/, '')
  const { bodyBytesMax } = limits
  const client = createClient({ url, tokens, bodyBytesMax }, recorder)
  const connector = createConnector(app, address)
  return {
    app,
    url,
    tokens,
    bodyBytesMax,
    plants,
    client,
    logged,
    /** The log's line of each request. */
    answered,
    /** The details of lines at the level `debug`. */
    debugged,
    /** The server's ends of all connections. */
    sockets,
    ...connector,
    async [Symbol.asyncDispose]() {
      client.close()
      connector.destroyClients()
      // Cut the connections, so that no test waits for clients to learn of the stop.
      app.server.closeAllConnections()
      await app.close()
    },
  }
}

/** Returns tokens with different rights, and the gate that knows them. */
function createTokens() {
  const { gate, add } = createMemoryTokens()
  const { write: all, read } = scopesByChoice
  const tokens = {
    full: add('full', all),
    readOnly: add('read only', read),
    writeOnly: add('write only', ['plants:write']),
    expired: add('expired', all, { expiresAt: new Date(Date.now() - 1) }),
    metrics: add('metrics', ['metrics:read']),
  }
  return { tokens, gate }
}

/** Returns functions that open connections to the server, and one that ends them all. */
function createConnector({ server }: FastifyInstance, { hostname, port }: URL) {
  const clients: Socket[] = []

  function open({ allowHalfOpen = false } = {}): Socket {
    const socket = openSocket({ host: hostname, port: Number(port), allowHalfOpen })
    clients.push(socket)
    return socket.on('error', () => {})
  }

  /**
   * Opens a connection that the client does not end after the server. Returns the
   * server's end too.
   */
  async function connect() {
    const accepted = once(server, 'connection')
    const socket = open({ allowHalfOpen: true })
    const [served]: Socket[] = await accepted
    assert(served !== undefined, 'the server accepts the connection')
    return { socket, served }
  }

  /** Opens connections one after the other, so that both ends belong together. */
  async function connectMany(count: number) {
    const connections: Awaited<ReturnType<typeof connect>>[] = []
    while (connections.length < count) {
      connections.push(await connect())
    }
    return connections
  }

  const destroyClients = () => clients.map(client => client.destroy())
  return { open, connect, connectMany, destroyClients }
}

/** Returns a plant as a repository finds it. */
export function versioned(plant: Plant): VersionedPlant {
  return { plant, version: '1' as Version }
}

/** Returns the bytes of a GET with the token that may do everything. */
export function getRequest({ tokens }: Service, path: string): string {
  return `GET ${path} HTTP/1.1\r\nhost: h\r\nauthorization: Bearer ${tokens.full}\r\n\r\n`
}

/** Opens a client that asks, and takes no more of the answer than its beginning. */
export async function askWithoutReading(service: Service, path: string) {
  const socket = service.open()
  socket.write(getRequest(service, path))
  await once(socket, 'readable')
  return socket
}

/** Returns inserts that wait until they are resumed, at the latest by the disposal. */
export function pausedInserts(onInsert = () => {}) {
  const beginning = Promise.withResolvers<void>()
  const { promise: resumed, resolve: resume } = Promise.withResolvers<void>()
  const insert: PlantRepository['insert'] = async () => {
    onInsert()
    beginning.resolve()
    await resumed
    return 'inserted'
  }
  const begun = beginning.promise
  return { plants: { insert }, begun, resume, [Symbol.dispose]: resume }
}

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { ServerLimits } from '../limits.ts'
import type { RequestLog } from '../request/request-log.ts'
import { refuseUnroutable } from './refusals.ts'

/** Pipelined requests that wait on one connection. Beyond it, reading pauses. */
const waitingRequestsMax = 16

/**
 * On all connections, about 4 kB each. Beyond it, a connection that sends more is closed: one packet may hold 2,400.
 */
const allWaitingRequestsMax = 10_000

export interface Connection {
  readonly socket: Socket
  /** To the newest request. Answers leave in order, so once this one has left, all have. */
  lastResponse: ServerResponse | undefined
  /** Callbacks that route the requests still waiting for an earlier answer to leave. */
  readonly waiting: (() => void)[]
  isHeldBack: boolean
  isFailed: boolean
}

export interface Connections {
  readonly open: Map<Socket, Connection>
  waitingRequests: number
  /** While the server stops listening: callbacks that route the requests received since. Called once it drains. */
  untilDrain: (() => void)[] | undefined
  isDraining: boolean
  /** Aborted to end batches that are still arriving, so that they are answered. */
  readonly ending: AbortController
}

export type Route = (request: IncomingMessage, response: ServerResponse) => void

const ofServers = new WeakMap<Server, Connections>()

export function connectionsOf(server: Server): Connections {
  return ofServers.get(server) as Connections
}

/** Returns Node's server. It routes the requests of a connection one after another, and failures are an Error. */
export function createNodeServer(limits: ServerLimits, logRequest: RequestLog, route: Route): Server {
  const requestTimeout = limits.requestTimeoutMs
  // Node refuses a longer timeout than the whole request's.
  const headersTimeout = Math.min(limits.headersTimeoutMs, requestTimeout)
  const server = createServer({
    maxHeaderSize: limits.headerBytesMax,
    requestTimeout,
    headersTimeout,
    // The delay until a timeout is noticed. Node's default is 30 seconds.
    connectionsCheckingInterval: Math.ceil(headersTimeout / 10),
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    // The door checks it.
    requireHostHeader: false,
  })
  // Also applies to a client that does not read its answer.
  server.timeout = limits.inactivityTimeoutMs
  server.maxConnections = 2 * limits.connectionsMax
  // A client that has stopped sending can still read (RFC 9112, 9.6).
  Object.assign(server, { httpAllowHalfOpen: true })

  const open = new Map<Socket, Connection>()
  const connections: Connections = {
    open,
    waitingRequests: 0,
    untilDrain: undefined,
    isDraining: false,
    ending: new AbortController(),
  }
  ofServers.set(server, connections)
  server.on('connection', (socket: Socket) => {
    const connection: Connection = {
      socket,
      lastResponse: undefined,
      waiting: [],
      isHeldBack: false,
      isFailed: false,
    }
    open.set(socket, connection)
    socket.once('close', () => {
      open.delete(socket)
      connections.waitingRequests -= connection.waiting.splice(0).length
    })
  })

  // Bound only when needed: a closure would cost every request.
  const routeUnlessStopping: Route = (request, response) => {
    if (connections.untilDrain === undefined) route(request, response)
    else connections.untilDrain.push(route.bind(undefined, request, response))
  }
  const routeInTurn: Route = (request, response) => {
    const connection = open.get(request.socket) as Connection
    if (connection.isFailed) return
    const before = connection.lastResponse
    connection.lastResponse = response
    if (connections.isDraining) {
      // Only the last answer of a connection may announce the close. Requests after it would get no answer.
      if (before !== undefined && !before.headersSent) before.shouldKeepAlive = true
      response.shouldKeepAlive = false
    }
    if (before === undefined || before.writableFinished) routeUnlessStopping(request, response)
    else waitInTurn(connections, connection, before, routeUnlessStopping.bind(undefined, request, response))
  }
  for (const event of ['request', 'checkContinue', 'checkExpectation']) server.on(event, routeInTurn)
  refuseUnroutable(server, open, limits.connectionsMax, logRequest)
  return server
}

/**
 * Routes the requests of a connection one after another. Otherwise a client could fill the memory with answers that
 * wait for their turn, or that it does not read.
 */
function waitInTurn(
  connections: Connections,
  connection: Connection,
  before: ServerResponse,
  route: () => void,
): void {
  const { waiting, socket } = connection
  waiting.push(route)
  connections.waitingRequests++
  before.once('finish', () => {
    const next = waiting.shift()
    // The connection was closed.
    if (next === undefined) return
    connections.waitingRequests--
    holdBack(connection)
    next()
  })
  holdBack(connection)
  if (connection.isHeldBack && connections.waitingRequests > allWaitingRequestsMax) {
    connection.isFailed = true
    socket.destroy()
  }
}

/**
 * Pauses or resumes reading, by the number of waiting requests. Node undoes `socket.pause()` at each request, but does
 * not read while the answers that wait exceed the socket's buffer. So it is told of one that does.
 */
function holdBack(connection: Connection): void {
  const isHeldBack = connection.waiting.length > waitingRequestsMax
  if (connection.isHeldBack === isHeldBack) return
  connection.isHeldBack = isHeldBack
  const { lastResponse, socket } = connection
  const bytes = socket.writableHighWaterMark + 1
  const { _onPendingData: notePending } = lastResponse as unknown as { _onPendingData(bytes: number): void }
  notePending(isHeldBack ? bytes : -bytes)
}

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { ServerLimits } from '../limits.ts'
import type { RequestLog } from '../request/request-log.ts'
import { refuseUnroutable } from './refusals.ts'

/** Requests of one connection that wait for those before them; past it no more is read of it. */
const waitingRequestsMax = 16

/**
 * Requests that wait on all connections, of some 4 kB each. The one packet that is read past the above may hold 2,400:
 * where there are that many, the connection is cut.
 */
const allWaitingRequestsMax = 10_000

/** What is known of one connection, from its beginning to its end. */
export interface Connection {
  readonly socket: Socket
  /** The answer to what came last. Answers leave in the order of their requests: once it has left, all have. */
  lastResponse: ServerResponse | undefined
  /** Routes what came while the requests before it were not answered yet. */
  readonly waiting: (() => void)[]
  isHeldBack: boolean
  isFailed: boolean
}

/** The open connections of a server. */
export interface Connections {
  readonly open: Map<Socket, Connection>
  waitingRequests: number
  /** Routes what arrives while the server stops to listen, once it drains; `undefined` at other times. */
  deferred: (() => void)[] | undefined
  /** Whether every answer is the last on its connection. */
  isDraining: boolean
}

export type Route = (request: IncomingMessage, response: ServerResponse) => void

const ofServers = new WeakMap<Server, Connections>()

export function connectionsOf(server: Server): Connections {
  return ofServers.get(server) as Connections
}

/** Node's server, which answers one request of a connection after the other, and what it cannot parse in our words. */
export function openServer(limits: ServerLimits, logRequest: RequestLog, route: Route): Server {
  const requestTimeout = limits.requestTimeoutMs
  // Node takes no longer one for the header section than for the whole.
  const headersTimeout = Math.min(limits.headersTimeoutMs, requestTimeout)
  const server = createServer({
    maxHeaderSize: limits.headerBytesMax,
    requestTimeout,
    headersTimeout,
    // How late it notices; half a minute unless told otherwise.
    connectionsCheckingInterval: Math.ceil(headersTimeout / 10),
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    // The door checks it.
    requireHostHeader: false,
  })
  // Of a client that takes no answers, too: it may have asked for many.
  server.timeout = limits.inactivityTimeoutMs
  server.maxConnections = 2 * limits.connectionsMax
  // A client that sends no more can still read (RFC 9112, 9.6).
  Object.assign(server, { httpAllowHalfOpen: true })

  const open = new Map<Socket, Connection>()
  const connections: Connections = { open, waitingRequests: 0, deferred: undefined, isDraining: false }
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

  // Bound where it must wait: a closure would be paid for by every request.
  const routeOrDefer: Route = (request, response) => {
    if (connections.deferred === undefined) route(request, response)
    else connections.deferred.push(route.bind(undefined, request, response))
  }
  const respond: Route = (request, response) => {
    const connection = open.get(request.socket) as Connection
    if (connection.isFailed) return
    const before = connection.lastResponse
    connection.lastResponse = response
    if (connections.isDraining) {
      // Only what comes last on a connection may say so: nothing after it would be answered.
      if (before !== undefined && !before.headersSent) before.shouldKeepAlive = true
      response.shouldKeepAlive = false
    }
    if (before === undefined || before.writableFinished) routeOrDefer(request, response)
    else waitInTurn(connections, connection, before, routeOrDefer.bind(undefined, request, response))
  }
  for (const event of ['request', 'checkContinue', 'checkExpectation']) server.on(event, respond)
  refuseUnroutable(server, open, limits.connectionsMax, logRequest)
  return server
}

/**
 * Routes one request of a connection after the other: answers that wait for their turn, or for a client that does not
 * take them, are as large as the client likes, and are held in memory.
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
    // The connection was cut.
    if (next === undefined) return
    connections.waitingRequests--
    if (waiting.length <= waitingRequestsMax) holdBack(connection, false)
    next()
  })
  if (waiting.length <= waitingRequestsMax) return
  if (connections.waitingRequests <= allWaitingRequestsMax) {
    holdBack(connection, true)
  } else {
    connection.isFailed = true
    socket.destroy()
  }
}

/**
 * Reads no more of a connection, or again. Node undoes a `socket.pause()` whenever a request is read, but does stop
 * reading while answers wait that are larger than the buffer of the socket: it is told that there is one.
 */
function holdBack(connection: Connection, isHeldBack: boolean): void {
  if (connection.isHeldBack === isHeldBack) return
  connection.isHeldBack = isHeldBack
  const { lastResponse, socket } = connection
  const bytes = socket.writableHighWaterMark + 1
  const { _onPendingData: notePending } = lastResponse as unknown as { _onPendingData(bytes: number): void }
  notePending(isHeldBack ? bytes : -bytes)
}

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { ServerLimits } from '../limits.ts'
import type { RequestLog } from '../request/request-log.ts'
import { refuseUnroutable } from './refusals.ts'

/** Requests of one connection that wait for those before them; past it no more is read of it. */
const waitingRequestsMax = 16

/** On all connections, of some 4 kB each; past it, a connection that goes on is cut: one packet may hold 2,400. */
const allWaitingRequestsMax = 10_000

export interface Connection {
  readonly socket: Socket
  /** To the newest request. Answers leave in the order of the requests: once this one has left, all have. */
  lastResponse: ServerResponse | undefined
  /** Route the requests that came before the answer to an earlier one had left. */
  readonly waiting: (() => void)[]
  isHeldBack: boolean
  isFailed: boolean
}

export interface Connections {
  readonly open: Map<Socket, Connection>
  waitingRequests: number
  /** Route, once the server drains, the requests that came after it stopped listening. */
  deferred: (() => void)[] | undefined
  /** Whether every answer is the last on its connection. */
  isDraining: boolean
  /** Aborted where batches that are still arriving must end, to be answered. */
  readonly ending: AbortController
}

export type Route = (request: IncomingMessage, response: ServerResponse) => void

const ofServers = new WeakMap<Server, Connections>()

export function connectionsOf(server: Server): Connections {
  return ofServers.get(server) as Connections
}

/** Node's server, with the requests of a connection in turn, and failures in the one shape. */
export function openServer(limits: ServerLimits, logRequest: RequestLog, route: Route): Server {
  const requestTimeout = limits.requestTimeoutMs
  // Node refuses a longer one than for the whole.
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
  // Also of a client that takes no answers.
  server.timeout = limits.inactivityTimeoutMs
  server.maxConnections = 2 * limits.connectionsMax
  // A client that sends no more can still read (RFC 9112, 9.6).
  Object.assign(server, { httpAllowHalfOpen: true })

  const open = new Map<Socket, Connection>()
  const connections: Connections = {
    open,
    waitingRequests: 0,
    deferred: undefined,
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

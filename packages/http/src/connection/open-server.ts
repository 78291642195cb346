import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { RequestError, type RequestErrorCode, toFailure } from '../answer/failures.ts'
import type { ServerLimits } from '../limits.ts'
import { type RequestLog, requestId } from '../request/request-log.ts'
import {
  type Connection,
  type Exchange,
  failInTurn,
  holdBack,
  type Route,
  trackConnections,
  writeFailureTo,
} from './client-connection.ts'

/** Requests of one connection that wait for those before them; past it no more is read of it. */
const waitingRequestsMax = 16

/**
 * Requests that wait on all connections, of some 4 kB each. The one packet that is read past the above may hold 2,400:
 * where there are that many, the connection is cut.
 */
const allWaitingRequestsMax = 10_000

/** Node's server, with answers to what it would answer on its own: without a body, or not in our words. */
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
  const connections = trackConnections(server, route)
  const { open } = connections
  const connectionOf = (socket: Socket) => open.get(socket) as Connection

  const fail = (connection: Connection, error: RequestError, request?: IncomingMessage) => {
    failInTurn(connection, error, () => {
      const { socket } = connection
      const reqId = requestId(request)
      const client = socket.remoteAddress
      const failure = toFailure(error)
      writeFailureTo(socket, failure, reqId)
      const { status, body } = failure
      const method = request?.method
      logRequest({ reqId, client, method, route: undefined, status, error: body.error, ms: 0 })
    })
  }
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
      connections.waitingRequests -= connection.waiting.length
      connection.waiting.length = 0
    })
    if (open.size <= limits.connectionsMax) return
    const message = 'the server has as many connections as it takes'
    fail(connection, new RequestError('too-many-connections', message))
  })
  /**
   * One request of a connection after the other: answers that wait for their turn, or for a client that does not take
   * them, are as large as the client likes, and are held in memory.
   */
  const waitInTurn = (connection: Connection, before: ServerResponse, exchange: Exchange) => {
    const { waiting } = connection
    if (waiting.push(exchange) === 1) before.once('finish', () => routeNext(connection))
    connections.waitingRequests++
    if (waiting.length <= waitingRequestsMax) return
    if (connections.waitingRequests <= allWaitingRequestsMax) return holdBack(connection, true)
    connection.isFailed = true
    connection.socket.destroy()
  }
  const routeOrDefer = (exchange: Exchange) => {
    if (connections.deferred === undefined) route(exchange.request, exchange.response)
    else connections.deferred.push(exchange)
  }
  const routeNext = (connection: Connection) => {
    const { waiting } = connection
    const next = waiting.shift()
    if (next === undefined) return
    connections.waitingRequests--
    if (waiting.length > 0) next.response.once('finish', () => routeNext(connection))
    if (waiting.length <= waitingRequestsMax) holdBack(connection, false)
    routeOrDefer(next)
  }
  const respond: Route = (request, response) => {
    const connection = connectionOf(request.socket)
    if (connection.isFailed) return
    const before = connection.lastResponse
    connection.lastResponse = response
    if (connections.isDraining) {
      // Only what comes last on a connection may say so: nothing after it would be answered.
      if (before !== undefined && !before.headersSent) before.shouldKeepAlive = true
      response.shouldKeepAlive = false
    }
    if (before === undefined || before.writableFinished) routeOrDefer({ request, response })
    else waitInTurn(connection, before, { request, response })
  }
  for (const event of ['request', 'checkContinue', 'checkExpectation']) server.on(event, respond)
  server.on('connect', (request: IncomingMessage) => {
    const error = new RequestError('method-not-allowed', 'this server is no proxy', { allow: '' })
    fail(connectionOf(request.socket), error, request)
  })
  server.on('clientError', (error: Error & { code?: string }, socket: Socket) => {
    const connection = connectionOf(socket)
    // Every packet that follows is one more error to the parser.
    if (connection?.isFailed) return
    if (connection === undefined || error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy()
      return
    }
    const [code, message] = parserFailures[error.code ?? ''] ?? [
      'bad-request',
      'the request is not well-formed HTTP',
    ]
    // What is held back is late through us.
    if (code === 'request-timeout' && connection.isHeldBack) return
    fail(connection, new RequestError(code, message))
  })
  return server
}

const parserFailures: Record<string, [RequestErrorCode, string]> = {
  HPE_HEADER_OVERFLOW: ['headers-too-large', 'the header fields are too large'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: ['body-too-large', 'the chunk extensions of the body are too large'],
  ERR_HTTP_REQUEST_TIMEOUT: ['request-timeout', 'the request did not arrive in time'],
}

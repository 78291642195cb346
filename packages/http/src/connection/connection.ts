import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { type Failure, RequestError, type RequestErrorCode, toFailure } from '../answer/failures.ts'
import { writeFailure } from '../answer/serializers.ts'
import type { ServerLimits } from '../limits.ts'
import { requestId, requestIdField } from '../request/request-id.ts'
import type { RequestLog } from '../request/request-log.ts'

/** For a client to take the last answer and close, before the connection is cut. */
const lingerTimeoutMs = 1_000

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
  /** The answer to what came last. Answers leave in the order of their requests, so it tells of all of them. */
  lastResponse: ServerResponse | undefined
  /** What came while the requests before it were not answered yet. */
  readonly waiting: Exchange[]
  isHeldBack: boolean
  isRefused: boolean
}

interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

/** The open connections of a server. */
export interface Connections {
  readonly open: Map<Socket, Connection>
  waitingRequests: number
  /** What arrives while the server stops to listen, where it does: see drain.ts. */
  held: Exchange[] | undefined
  readonly route: Route
  /** Whether every answer is the last on its connection. */
  isDraining: boolean
}

const connectionsOfServers = new WeakMap<Server, Connections>()

/** @param server one of {@link openServer} */
export function connectionsOf(server: Server): Connections {
  return connectionsOfServers.get(server) as Connections
}

type Route = (request: IncomingMessage, response: ServerResponse) => void

/** Node's server, with answers to what it would answer on its own: without a body, or not in our words. */
export function openServer(limits: ServerLimits, logRequest: RequestLog, route: Route): Server {
  const requestTimeout = limits.requestTimeoutMs
  // Node refuses to wait longer for the header section than for the whole.
  const headersTimeout = Math.min(limits.headersTimeoutMs, requestTimeout)
  const server = createServer({
    maxHeaderSize: limits.headerBytesMax,
    requestTimeout,
    headersTimeout,
    // How late it notices; half a minute unless told otherwise.
    connectionsCheckingInterval: Math.ceil(headersTimeout / 10),
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    // A missing Host is refused by the routes.
    requireHostHeader: false,
  })
  // Of a client that takes no answers, too: it may have asked for many.
  server.timeout = limits.inactivityTimeoutMs
  server.maxConnections = 2 * limits.connectionsMax
  // A client that sends no more can still read (RFC 9112, 9.6).
  Object.assign(server, { httpAllowHalfOpen: true })
  const connections: Connections = {
    open: new Map(),
    waitingRequests: 0,
    held: undefined,
    route,
    isDraining: false,
  }
  connectionsOfServers.set(server, connections)
  const { open } = connections
  const connectionOf = (socket: Socket) => open.get(socket) as Connection

  const refuse = (connection: Connection, error: RequestError, request?: IncomingMessage) => {
    refuseInTurn(connection, error, () => {
      const { socket } = connection
      const reqId = requestId(request)
      const client = socket.remoteAddress
      const failure = toFailure(error)
      writeRefusal(socket, failure, reqId)
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
      isRefused: false,
    }
    open.set(socket, connection)
    socket.once('close', () => {
      open.delete(socket)
      connections.waitingRequests -= connection.waiting.length
      connection.waiting.length = 0
    })
    if (open.size <= limits.connectionsMax) return
    const message = 'the server has as many connections as it takes'
    refuse(connection, new RequestError('too-many-connections', message))
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
    connection.isRefused = true
    connection.socket.destroy()
  }
  const routeOrHold = (exchange: Exchange) => {
    if (connections.held === undefined) route(exchange.request, exchange.response)
    else connections.held.push(exchange)
  }
  const routeNext = (connection: Connection) => {
    const { waiting } = connection
    const next = waiting.shift()
    if (next === undefined) return
    connections.waitingRequests--
    if (waiting.length > 0) next.response.once('finish', () => routeNext(connection))
    if (waiting.length <= waitingRequestsMax) holdBack(connection, false)
    routeOrHold(next)
  }
  const respond: Route = (request, response) => {
    const connection = connectionOf(request.socket)
    if (connection.isRefused) return
    const before = connection.lastResponse
    connection.lastResponse = response
    if (connections.isDraining) {
      // Only what comes last on a connection may say so: nothing after it would be answered.
      if (before !== undefined && !before.headersSent) before.shouldKeepAlive = true
      response.shouldKeepAlive = false
    }
    if (before === undefined || before.writableFinished) routeOrHold({ request, response })
    else waitInTurn(connection, before, { request, response })
  }
  for (const event of ['request', 'checkContinue', 'checkExpectation']) server.on(event, respond)
  server.on('connect', (request: IncomingMessage) => {
    const error = new RequestError('method-not-allowed', 'this server is no proxy', { allow: '' })
    refuse(connectionOf(request.socket), error, request)
  })
  server.on('clientError', (error: Error & { code?: string }, socket: Socket) => {
    const connection = connectionOf(socket)
    // Every packet that follows is one more error to the parser.
    if (connection?.isRefused) return
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
    refuse(connection, new RequestError(code, message))
  })
  return server
}

const parserFailures: Record<string, [RequestErrorCode, string]> = {
  HPE_HEADER_OVERFLOW: ['headers-too-large', 'the header fields are too large'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: ['body-too-large', 'the chunk extensions of the body are too large'],
  ERR_HTTP_REQUEST_TIMEOUT: ['request-timeout', 'the request did not arrive in time'],
}

/**
 * Reads no more of a connection, or again. Node undoes a `socket.pause()` whenever a request is read, but stops reading
 * in earnest while answers wait that are larger than the buffer of the socket: it is told that there is one.
 */
function holdBack(connection: Connection, isHeldBack: boolean): void {
  if (connection.isHeldBack === isHeldBack) return
  connection.isHeldBack = isHeldBack
  const { lastResponse, socket } = connection
  const bytes = socket.writableHighWaterMark + 1
  const { _onPendingData: notePending } = lastResponse as unknown as { _onPendingData(bytes: number): void }
  notePending(isHeldBack ? bytes : -bytes)
}

/** Refuses what came last on a connection once all before it is answered, and closes the connection. */
function refuseInTurn(connection: Connection, error: RequestError, refuse: () => void): void {
  connection.isRefused = true
  const { lastResponse: last, socket } = connection
  if (last === undefined || last.req.complete) {
    afterFinish(last, () => {
      refuse()
      linger(socket)
    })
    return
  }
  // It is the body of the last request that is broken. Whoever waits for it learns that, and answers.
  if (last.req.listenerCount('error') > 0) last.req.emit('error', error)
  else tellNextListener(last.req, error)
  afterFinish(last, () => {
    if (socket.writable) socket.end()
    linger(socket)
  })
}

/** The request waits for its turn, or for its token to be looked up, and its body is read only then. */
function tellNextListener(request: IncomingMessage, error: RequestError): void {
  const tell = (event: string | symbol) => {
    if (event !== 'error') return
    request.off('newListener', tell)
    setImmediate(() => request.emit('error', error))
  }
  request.on('newListener', tell)
}

function afterFinish(response: ServerResponse | undefined, then: () => void): void {
  if (response === undefined || response.writableFinished) then()
  else response.once('finish', then)
}

function writeRefusal(socket: Socket, { status, headers, body }: Failure, reqId: string): void {
  const content = writeFailure(body)
  const fields = {
    date: new Date().toUTCString(),
    ...headers,
    [requestIdField]: reqId,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(content),
    connection: 'close',
  }
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${content}`)
}

/** What still comes is read and dropped: a connection cut with bytes unread could take the answer with it. */
function linger(socket: Socket): void {
  // Unread by Node's parser too, which would make requests of it that wait forever.
  socket.removeAllListeners('data')
  socket.on('data', () => {})
  socket.resume()
  const cut = setTimeout(() => socket.destroy(), lingerTimeoutMs)
  socket.once('close', () => clearTimeout(cut))
}

import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http'
import type { Socket } from 'node:net'
import { writeFailure } from '../answer/answer.ts'
import { requestIdField } from '../answered-request.ts'
import { countedBytesMin } from '../budget.ts'
import type { RequestErrorCode } from '../errors/error-numbers.ts'
import { RequestError, requestFailure } from '../errors/failures.ts'
import { lingerTimeoutMs, type ServerLimits } from '../limits.ts'
import { bodyOf, longReadsMax, receiveBody } from '../request/body.ts'
import { type RequestLog, requestId } from '../request/log.ts'

/** Pipelined requests that may always wait. */
const waitingPerConnection = 16
/**
 * Those that wait on all connections together, about 4 kB each: one packet may hold 2,400. Beyond it, a connection with more than
 * {@link waitingPerConnection} is closed.
 */
const waitingMax = 5_000

export interface Connection {
  readonly socket: Socket
  /** Of the request that is being answered. */
  current: ServerResponse | undefined
  /** Of the requests behind it. */
  readonly waiting: ServerResponse[]
  /** Ends the connection, once all requests are answered. Later ones get no answer. */
  endWithRefusal: (() => void) | undefined
}

const connectionsOfServers = new WeakMap<Server, ReadonlyMap<Socket, Connection>>()

export function connectionsOf(server: Server): ReadonlyMap<Socket, Connection> {
  return connectionsOfServers.get(server) ?? new Map()
}

const parserFailures: Record<string, [RequestErrorCode, string]> = {
  HPE_HEADER_OVERFLOW: ['headers-too-large', 'the header fields are too large'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: ['body-too-large', 'the chunk extensions of the body are too large'],
  ERR_HTTP_REQUEST_TIMEOUT: ['request-timeout', 'the request did not arrive in time'],
}

/**
 * Returns Node's server. It routes the requests of a connection one after another, so that answers do not pile up, lets
 * their bodies flow from their arrival, and answers what Node does not route.
 */
export function createNodeServer(
  limits: ServerLimits,
  logRequest: RequestLog,
  handle: RequestListener,
): Server {
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
    optimizeEmptyRequests: true,
    // `checkHeaders` does.
    requireHostHeader: false,
  })
  server.timeout = limits.inactivityTimeoutMs
  server.maxConnections = 2 * limits.connectionsMax
  // A client that has stopped sending can still read (RFC 9112, 9.6).
  Object.assign(server, { httpAllowHalfOpen: true })

  const open = new Map<Socket, Connection>()
  connectionsOfServers.set(server, open)
  let waitingOnAll = 0
  let longReads = 0
  let areOthersPaused = false

  const refuse = (connection: Connection, error: RequestError, request?: IncomingMessage) => {
    if (connection.endWithRefusal !== undefined) return
    const { socket, current } = connection
    const last = connection.waiting.at(-1) ?? current
    const isBodyBroken = last !== undefined && !last.req.complete
    connection.endWithRefusal = () => {
      if (isBodyBroken) endSocket(socket)
      else refuseSocket(socket, error, request)
    }
    // Its consumer answers.
    if (isBodyBroken) bodyOf(last.req)?.fail(error)
    if (current === undefined) connection.endWithRefusal()
  }
  const refuseSocket = (socket: Socket, error: RequestError, request?: IncomingMessage) => {
    const { status, headers, body } = requestFailure(error)
    const [reqId, client, content] = [requestId(request), socket.remoteAddress, writeFailure(body)]
    const fields = {
      date: new Date().toUTCString(),
      ...headers,
      [requestIdField]: reqId,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(content),
      connection: 'close',
    }
    const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
    endSocket(socket, `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${content}`)
    logRequest({ reqId, client, method: request?.method, route: undefined, status, error: body.error, ms: 0 })
  }

  const begin = (connection: Connection, response: ServerResponse) => {
    connection.current = response
    response.on('close', answerNext)
  }
  function answerNext(this: ServerResponse): void {
    const connection = open.get(this.req.socket)
    if (connection === undefined) return
    const next = connection.waiting.shift()
    connection.current = undefined
    if (next === undefined) {
      connection.endWithRefusal?.()
      return
    }
    waitingOnAll--
    begin(connection, next)
    // In a turn of its own, so that other connections have theirs.
    setImmediate(() => {
      if (!connection.socket.writable) return
      readOn(connection)
      handle(next.req, next)
    })
  }
  const readOn = ({ socket, waiting }: Connection) => {
    if (waiting.length === 0) socket.resume()
  }
  /** Reads from no further connection in this turn of the event loop: each packet may hold thousands of requests or chunks. */
  const pauseOthers = (reading: Connection) => {
    if (areOthersPaused) return
    areOthersPaused = true
    const paused = [...open.values()].filter(each => each !== reading && !each.socket.isPaused())
    for (const { socket } of paused) socket.pause()
    setImmediate(() => {
      areOthersPaused = false
      paused.forEach(readOn)
    })
  }
  const noteLongRead = (reading: Connection) => {
    longReads++
    setImmediate(() => longReads--)
    if (longReads > longReadsMax) pauseOthers(reading)
  }
  const handleInTurn: RequestListener = (request, response) => {
    const { socket, headers } = request
    const connection = open.get(socket)
    if (connection === undefined) return
    const isRefused = connection.endWithRefusal !== undefined
    if (headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined) {
      const body = receiveBody(request, {
        pause: () => pause(socket),
        resume: () => readOn(connection),
        noteLongRead: () => noteLongRead(connection),
      })
      if (isRefused) body.drop()
    }
    // What follows may be of another protocol, or be read as one request by a proxy and as two by Node (RFC 9112, 6.1).
    if (headers.upgrade !== undefined || (headers['transfer-encoding'] && request.httpVersion === '1.0'))
      response.setHeader('connection', 'close')
    if (connection.current === undefined) {
      // What follows waits until the connection is closed.
      if (isRefused) connection.current = response
      else {
        begin(connection, response)
        handle(request, response)
      }
      return
    }
    waitingOnAll++
    const ahead = connection.waiting.push(response)
    const isFull = waitingOnAll > waitingMax
    if (isFull) pauseOthers(connection)
    if (isFull && ahead > waitingPerConnection) socket.destroy()
    else if (ahead === 1) pause(socket)
  }
  for (const event of ['request', 'checkContinue', 'checkExpectation']) server.on(event, handleInTurn)

  server.on('connection', (socket: Socket) => {
    const connection: Connection = { socket, current: undefined, waiting: [], endWithRefusal: undefined }
    open.set(socket, connection)
    socket.once('close', () => {
      open.delete(socket)
      waitingOnAll -= connection.waiting.length
    })
    if (open.size > limits.connectionsMax)
      refuse(
        connection,
        new RequestError('too-many-connections', 'the server is at its connection limit: try again later'),
      )
  })
  server.on('timeout', (socket: Socket) => {
    const connection = open.get(socket)
    if (connection !== undefined && waitsForServer(connection)) socket.setTimeout(limits.inactivityTimeoutMs)
    else socket.destroy()
  })
  server.on('connect', (request: IncomingMessage, socket: Socket) => {
    socket.on('error', () => {}).on('data', () => pauseFlood(socket))
    const error = new RequestError('method-not-allowed', 'this server is not a proxy', { allow: '' })
    refuse(open.get(socket) as Connection, error, request)
  })
  server.on('clientError', ({ code }: Error & { code?: string }, socket: Socket) => {
    const connection = open.get(socket)
    // What follows the last request gets no answer.
    if (connection === undefined || code === 'HPE_CLOSED_CONNECTION') return
    if (!socket.writable) return pauseFlood(socket)
    // A request that waits for the server is not late.
    const { current, waiting } = connection
    const isExcused = waiting.length > 0 || (current?.req.complete === false && waitsForServer(connection))
    if (code === 'ERR_HTTP_REQUEST_TIMEOUT' && isExcused) return
    const [failure, message] = parserFailures[`${code}`] ?? [
      'bad-request',
      'the request is not well-formed HTTP',
    ]
    refuse(connection, new RequestError(failure, message))
  })
  return server
}

/** Whether it is the server's turn: the client has neither bytes to send nor an answer to read. */
function waitsForServer({ socket, current }: Connection): boolean {
  if (current === undefined || current.writableEnded || socket.writableLength > 0) return false
  return current.req.complete || !bodyOf(current.req)?.waitsForClient
}

/**
 * Ends a connection whose client may still send: closing with unread bytes at once could lose the answer. It is read on, as
 * only then the client's end is noticed.
 */
function endSocket(socket: Socket, lastBytes = ''): void {
  socket.end(lastBytes)
  socket.resume()
  const cut = setTimeout(() => socket.destroy(), lingerTimeoutMs)
  socket.once('close', () => clearTimeout(cut))
}

/** Reads no more of what is no request, after a few packets. */
function pauseFlood(socket: Socket): void {
  if (socket.bytesRead > countedBytesMin) pause(socket)
}

/** Stops reading. Node would read on at the next tick. */
function pause(socket: Socket): void {
  queueMicrotask(() => socket.pause())
}

import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
} from 'node:http'
import type { Socket } from 'node:net'
import { RequestError, type RequestErrorCode } from '../errors/error-numbers.ts'
import { headerFieldsMax, type ServerLimits } from '../limits.ts'
import { type Connection, Connections } from './connections.ts'

const connectionsOfServers = new WeakMap<Server, Connections>()

export function connectionsOf(server: Server): ReadonlyMap<Socket, Connection> {
  return connectionsOfServers.get(server)?.open ?? new Map()
}

const clientFailures: Record<string, [RequestErrorCode, string]> = {
  HPE_HEADER_OVERFLOW: ['headers-too-large', 'the header fields are too large'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [
    'body-too-large',
    'the chunk extensions of the body are too large',
  ],
  ERR_HTTP_REQUEST_TIMEOUT: ['request-timeout', 'the request did not arrive in time'],
}

/**
 * Logs a refusal, and returns the text of its answer, the last on its connection.
 *
 * @param request absent if it could not be parsed
 */
export type LogAndFormatRefusal = (
  error: RequestError,
  socket: Socket,
  request?: IncomingMessage,
) => string

/**
 * Returns Node's server. It hands requests to {@link Connections}, and answers what Node
 * does not route.
 */
export function createNodeServer(
  limits: ServerLimits,
  logAndFormatRefusal: LogAndFormatRefusal,
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
    // `checkHeaderSections` requires it.
    requireHostHeader: false,
    // Otherwise Node would keep the first of several, and a proxy perhaps the last.
    joinDuplicateHeaders: true,
  })
  server.timeout = limits.inactivityTimeoutMs
  server.maxConnections = 2 * limits.connectionsMax
  // Node 24 drops what is above this number. `checkHeaderSections` sees that there is
  // one.
  server.maxHeadersCount = headerFieldsMax + 1
  const connections = new Connections(handle)
  connectionsOfServers.set(server, connections)

  const refuse = (socket: Socket, error: RequestError, request?: IncomingMessage) =>
    connections.open
      .get(socket)
      ?.refuse(error, () => logAndFormatRefusal(error, socket, request))

  server.on('connection', (socket: Socket) => {
    connections.add(socket)
    if (connections.open.size > limits.connectionsMax) {
      const message = 'the server is at its connection limit: try again later'
      refuse(socket, new RequestError('too-many-connections', message))
    }
  })
  for (const event of ['request', 'checkContinue', 'checkExpectation']) {
    server.on(event, ({ socket }, response) =>
      connections.open.get(socket)?.addRequest(response),
    )
  }
  server.on('timeout', (socket: Socket) => {
    if (connections.open.get(socket)?.mayBeSilent) {
      socket.setTimeout(limits.inactivityTimeoutMs)
    } else {
      socket.destroy()
    }
  })
  server.on('connect', (request: IncomingMessage, socket: Socket) => {
    socket.on('error', () => {})
    const message = 'this server is not a proxy'
    const error = new RequestError('method-not-allowed', message, { allow: '' })
    refuse(socket, error, request)
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    const connection = connections.open.get(socket)
    // Bytes after the last request get no answer.
    const isTooLate = !socket.writable || error.code === 'HPE_CLOSED_CONNECTION'
    if (connection === undefined || isTooLate) {
      return
    }
    // A browser opens connections that it may never use. Such a one ends without an
    // answer.
    if (socket.bytesRead === 0) {
      socket.destroy()
      return
    }
    const [failure, message] = clientFailures[`${error.code}`] ?? [
      'bad-request',
      'the request is not well-formed HTTP',
    ]
    const refuseIt = () => refuse(socket, new RequestError(failure, message))
    if (failure === 'request-timeout' && waitsForServer(connection)) {
      onceLateAgain(connection, requestTimeout, refuseIt)
    } else {
      refuseIt()
    }
  })
  return server
}

/** Whether a late request has to wait for the server. */
function waitsForServer({ current, waiting, mayBeSilent }: Connection) {
  return waiting.length > 0 || (current?.req.complete === false && mayBeSilent)
}

/**
 * Calls back once a request whose body is late has been up to its client for one to two
 * timeouts. Node says only once that it is late. A header section that comes late behind
 * waiting requests is not timed again: only the timeout of silence ends its connection.
 */
function onceLateAgain(connection: Connection, timeoutMs: number, callBack: () => void) {
  const request = connection.last?.req
  let timeouts = 0
  const timer = setInterval(() => {
    if (request?.complete !== false || connection.socket.destroyed) {
      clearInterval(timer)
      return
    }
    timeouts = waitsForServer(connection) ? 0 : timeouts + 1
    if (timeouts === 2) {
      callBack()
    }
  }, timeoutMs).unref()
}

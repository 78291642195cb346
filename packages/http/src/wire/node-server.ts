import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
} from 'node:http'
import type { Socket } from 'node:net'
import type { RequestErrorCode } from '../errors/error-numbers.ts'
import { RequestError } from '../errors/failures.ts'
import type { ServerLimits } from '../limits.ts'
import { type Connection, Connections } from './connections.ts'

const connectionsOfServers = new WeakMap<Server, Connections>()

export function connectionsOf(server: Server): ReadonlyMap<Socket, Connection> {
  return connectionsOfServers.get(server)?.open ?? new Map()
}

const parserFailures: Record<string, [RequestErrorCode, string]> = {
  HPE_HEADER_OVERFLOW: ['headers-too-large', 'the header fields are too large'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [
    'body-too-large',
    'the chunk extensions of the body are too large',
  ],
  ERR_HTTP_REQUEST_TIMEOUT: ['request-timeout', 'the request did not arrive in time'],
}

/** Returns a whole answer, the last on its connection. The request is absent if it could not be parsed. */
export type WriteRefusal = (
  error: RequestError,
  socket: Socket,
  request?: IncomingMessage,
) => string

/** Returns Node's server. It hands requests to {@link Connections}, and answers what Node does not route. */
export function createNodeServer(
  limits: ServerLimits,
  writeRefusal: WriteRefusal,
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
  const connections = new Connections(handle)
  connectionsOfServers.set(server, connections)

  const refuse = (
    connection: Connection,
    error: RequestError,
    request?: IncomingMessage,
  ) => connection.refuse(error, () => writeRefusal(error, connection.socket, request))

  server.on('connection', (socket: Socket) => {
    const connection = connections.add(socket)
    if (connections.open.size <= limits.connectionsMax) {
      return
    }
    const message = 'the server is at its connection limit: try again later'
    refuse(connection, new RequestError('too-many-connections', message))
  })
  for (const event of ['request', 'checkContinue', 'checkExpectation']) {
    server.on(event, ({ socket }, response) =>
      connections.open.get(socket)?.receive(response),
    )
  }
  server.on('timeout', (socket: Socket) => {
    if (connections.open.get(socket)?.waitsForServer) {
      socket.setTimeout(limits.inactivityTimeoutMs)
    } else {
      socket.destroy()
    }
  })
  server.on('connect', (request: IncomingMessage, socket: Socket) => {
    socket.on('error', () => {})
    const error = new RequestError('method-not-allowed', 'this server is not a proxy', {
      allow: '',
    })
    refuse(connections.open.get(socket) as Connection, error, request)
  })
  server.on('clientError', ({ code }: Error & { code?: string }, socket: Socket) => {
    const connection = connections.open.get(socket)
    // What follows the last request gets no answer.
    if (
      connection === undefined ||
      !socket.writable ||
      code === 'HPE_CLOSED_CONNECTION'
    ) {
      return
    }
    // A browser opens connections that it may never use. Such a one ends without an answer.
    if (socket.bytesRead === 0) {
      socket.destroy()
      return
    }
    // A request that waits for the server is not late.
    const { current, waiting, waitsForServer } = connection
    const isExcused =
      waiting.length > 0 || (current?.req.complete === false && waitsForServer)
    if (code === 'ERR_HTTP_REQUEST_TIMEOUT' && isExcused) {
      return
    }
    const [failure, message] = parserFailures[`${code}`] ?? [
      'bad-request',
      'the request is not well-formed HTTP',
    ]
    refuse(connection, new RequestError(failure, message))
  })
  return server
}

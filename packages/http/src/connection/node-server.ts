import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  STATUS_CODES,
} from 'node:http'
import type { Socket } from 'node:net'
import { writeFailure } from '../answer/answer.ts'
import type { RequestErrorCode } from '../errors/error-numbers.ts'
import { RequestError, requestFailure } from '../errors/failures.ts'
import type { ServerLimits } from '../limits.ts'
import { type RequestLog, requestId } from '../request/log.ts'
import { requestIdField } from '../request-context.ts'
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

/** Returns Node's server. It hands requests to {@link Connections}, and answers what Node does not route. */
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
    // `checkFields` does.
    requireHostHeader: false,
  })
  server.timeout = limits.inactivityTimeoutMs
  server.maxConnections = 2 * limits.connectionsMax
  const connections = new Connections(handle)
  connectionsOfServers.set(server, connections)

  const refuse = (
    connection: Connection,
    error: RequestError,
    request?: IncomingMessage,
  ) =>
    connection.refuse(error, () =>
      writeRefusal(error, logRequest, connection.socket, request),
    )

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

/** Returns and logs a whole answer, the last on its connection. */
function writeRefusal(
  error: RequestError,
  logRequest: RequestLog,
  { remoteAddress: client }: Socket,
  request?: IncomingMessage,
): string {
  const { status, headers, body } = requestFailure(error)
  const [reqId, content] = [requestId(request), writeFailure(body)]
  logRequest({
    reqId,
    client,
    method: request?.method,
    route: undefined,
    status,
    error: body.error,
    ms: 0,
  })
  const fields = {
    date: new Date().toUTCString(),
    ...headers,
    [requestIdField]: reqId,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(content),
    connection: 'close',
  }
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${content}`
}

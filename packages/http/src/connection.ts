import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { lastResponse, noteResponse } from './drain.ts'
import { RequestError, type RequestErrorCode, toFailure } from './errors.ts'
import type { ServerLimits } from './limits.ts'
import { requestId, requestIdField } from './request-id.ts'
import { writeError } from './writers.ts'

/** For a client to take the last answer and close, before the connection is cut. */
const lingerTimeoutMs = 1_000

const beingRefused = new WeakSet<Socket>()

/** Requests of one connection that wait for those before them; past it no more is read. */
const waitingRequestsMax = 16
const waitingRequests = new WeakMap<Socket, number>()

type Route = (request: IncomingMessage, response: ServerResponse) => void

/** Node's server, with answers to what it would answer on its own: without a body, or not in our words. */
export function openServer(limits: ServerLimits, route: Route): Server {
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
  let connections = 0
  server.on('connection', (socket: Socket) => {
    connections++
    socket.once('close', () => connections--)
    if (connections <= limits.connectionsMax) return
    const message = 'the server has as many connections as it takes'
    refuseInTurn(socket, new RequestError('too-many-connections', message))
  })
  const respond: Route = (request, response) => {
    if (beingRefused.has(request.socket)) return
    const before = lastResponse(request.socket)
    noteResponse(server, request.socket, response)
    routeInTurn(before, request, () => route(request, response))
  }
  server.on('request', respond)
  server.on('checkContinue', respond)
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    // RFC 9110, 10.1.1: HTTP/1.0 knows no expectations.
    if (request.httpVersion === '1.0') return respond(request, response)
    noteResponse(server, request.socket, response)
    const message = `the expectation ${request.headers.expect} can not be met`
    const { status, fields, content } = write(new RequestError('expectation-failed', message))
    response.writeHead(status, { ...fields, [requestIdField]: requestId(request) }).end(content)
  })
  server.on('connect', (_request: IncomingMessage, socket: Socket) => {
    refuseInTurn(socket, new RequestError('method-not-allowed', 'this server is no proxy', { allow: '' }))
  })
  return server
}

/**
 * One request of a connection after the other: answers that wait for their turn, or for a client that does not take
 * them, are as large as the client likes, and are held in memory.
 */
function routeInTurn(before: ServerResponse | undefined, request: IncomingMessage, route: () => void): void {
  if (before === undefined || before.writableFinished) {
    route()
    return
  }
  const { socket } = request
  const count = (change: number) => {
    const waiting = (waitingRequests.get(socket) ?? 0) + change
    waitingRequests.set(socket, waiting)
    return waiting
  }
  if (count(1) > waitingRequestsMax) socket.pause()
  before.once('finish', () => {
    if (count(-1) <= waitingRequestsMax && socket.isPaused()) socket.resume()
    route()
  })
}

/** Answers what Node's parser could not make a request of. */
export function refuseConnection(error: Error & { code?: string }, socket: Socket): void {
  // Every packet that follows is one more error to the parser.
  if (beingRefused.has(socket)) return
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const [code, message] = parserFailures[error.code ?? ''] ?? [
    'bad-request',
    'the request is not well-formed HTTP',
  ]
  refuseInTurn(socket, new RequestError(code, message, { connection: 'close' }))
}

const parserFailures: Record<string, [RequestErrorCode, string]> = {
  HPE_HEADER_OVERFLOW: ['headers-too-large', 'the header fields are too large'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: ['body-too-large', 'the chunk extensions of the body are too large'],
  ERR_HTTP_REQUEST_TIMEOUT: ['request-timeout', 'the request did not arrive in time'],
}

/** Refuses what came last on a connection once all before it is answered, and closes the connection. */
function refuseInTurn(socket: Socket, error: RequestError): void {
  beingRefused.add(socket)
  const last = lastResponse(socket)
  if (last === undefined || last.req.complete) {
    afterFinish(last, () => refuse(socket, error))
    return
  }
  // It is the body of the last request that is broken. Whoever waits for it learns that, and answers.
  if (last.req.listenerCount('error') > 0) last.req.emit('error', error)
  else tellNextListener(last.req, error)
  afterFinish(last, () => end(socket))
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

function refuse(socket: Socket, error: RequestError): void {
  const { status, fields, content } = write(error)
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
  const date = `date: ${new Date().toUTCString()}\r\n`
  end(socket, `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${date}${lines.join('')}\r\n${content}`)
}

function write(error: RequestError) {
  const { status, headers, body } = toFailure(error)
  const content = writeError(body)
  const fields = {
    ...headers,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(content),
    connection: 'close',
  }
  return { status, fields, content }
}

/** What still comes is read and dropped: a connection cut with bytes unread could take the answer with it. */
function end(socket: Socket, answer = ''): void {
  if (socket.writable) socket.end(answer)
  socket.resume()
  const cut = setTimeout(() => socket.destroy(), lingerTimeoutMs)
  socket.once('close', () => clearTimeout(cut))
}

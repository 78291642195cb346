import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { writeFailure } from '../answer/answer.ts'
import type { Failure, RequestError } from '../answer/failures.ts'
import { requestIdField } from '../request/request-log.ts'

/** For a client to take the last answer and close, before the connection is cut. */
const lingerTimeoutMs = 1_000

/** What is known of one connection, from its beginning to its end. */
export interface Connection {
  readonly socket: Socket
  /** The answer to what came last. Answers leave in the order of their requests, so it tells of all of them. */
  lastResponse: ServerResponse | undefined
  /** What came while the requests before it were not answered yet. */
  readonly waiting: Exchange[]
  isHeldBack: boolean
  isFailed: boolean
}

export interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

/** The open connections of a server. */
export interface Connections {
  readonly open: Map<Socket, Connection>
  waitingRequests: number
  /** What arrives while the server stops to listen, where it does: see drain.ts. */
  deferred: Exchange[] | undefined
  readonly route: Route
  /** Whether every answer is the last on its connection. */
  isDraining: boolean
}

const ofServers = new WeakMap<Server, Connections>()

export function connectionsOf(server: Server): Connections {
  return ofServers.get(server) as Connections
}

export function trackConnections(server: Server, route: Route): Connections {
  const connections = { open: new Map(), waitingRequests: 0, deferred: undefined, route, isDraining: false }
  ofServers.set(server, connections)
  return connections
}

export type Route = (request: IncomingMessage, response: ServerResponse) => void

/**
 * Reads no more of a connection, or again. Node undoes a `socket.pause()` whenever a request is read, but stops reading
 * in earnest while answers wait that are larger than the buffer of the socket: it is told that there is one.
 */
export function holdBack(connection: Connection, isHeldBack: boolean): void {
  if (connection.isHeldBack === isHeldBack) return
  connection.isHeldBack = isHeldBack
  const { lastResponse, socket } = connection
  const bytes = socket.writableHighWaterMark + 1
  const { _onPendingData: notePending } = lastResponse as unknown as { _onPendingData(bytes: number): void }
  notePending(isHeldBack ? bytes : -bytes)
}

/** Answers what came last on a connection with a failure, once all before it is answered, and closes the connection. */
export function failInTurn(connection: Connection, error: RequestError, answer: () => void): void {
  connection.isFailed = true
  const { lastResponse: last, socket } = connection
  if (last === undefined || last.req.complete) {
    afterFinish(last, () => {
      answer()
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
    // Unless it was refused for something else by then.
    setImmediate(() => request.listenerCount('error') > 0 && request.emit('error', error))
  }
  request.on('newListener', tell)
}

function afterFinish(response: ServerResponse | undefined, then: () => void): void {
  if (response === undefined || response.writableFinished) then()
  else response.once('finish', then)
}

export function writeFailureTo(socket: Socket, { status, headers, body }: Failure, reqId: string): void {
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

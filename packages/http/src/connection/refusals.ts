import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { writeFailure } from '../answer/answer.ts'
import { type Failure, RequestError, type RequestErrorCode, toFailure } from '../answer/failures.ts'
import { timedByLine } from '../request/lines.ts'
import { type RequestLog, requestId, requestIdField } from '../request/request-log.ts'
import type { Connection } from './node-server.ts'

/** For a client to read the last answer and close, before the connection is destroyed. */
const lingerTimeoutMs = 1_000

const parserFailures: Record<string, [RequestErrorCode, string]> = {
  HPE_HEADER_OVERFLOW: ['headers-too-large', 'the header fields are too large'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: ['body-too-large', 'the chunk extensions of the body are too large'],
  ERR_HTTP_REQUEST_TIMEOUT: ['request-timeout', 'the request did not arrive in time'],
}

/** Answers what Node does not route with a failure, logs it, and closes the connection. */
export function refuseUnroutable(
  server: Server,
  open: ReadonlyMap<Socket, Connection>,
  connectionsMax: number,
  logRequest: RequestLog,
): void {
  const refuse = (connection: Connection, error: RequestError, request?: IncomingMessage) => {
    failInTurn(connection, error, () => {
      const { socket } = connection
      const reqId = requestId(request)
      const client = socket.remoteAddress
      const failure = toFailure(error)
      const { status, body } = failure
      writeFailureTo(socket, failure, reqId)
      logRequest({
        reqId,
        client,
        method: request?.method,
        route: undefined,
        status,
        error: body.error,
        ms: 0,
      })
    })
  }
  server.on('connection', (socket: Socket) => {
    // Node closes with it after the last answer, and would do so at once.
    socket.destroySoon = () => endAndLinger(socket)
    if (open.size <= connectionsMax) return
    const message = 'the server is at its connection limit: try again later'
    refuse(open.get(socket) as Connection, new RequestError('too-many-connections', message))
  })
  server.on('connect', (request: IncomingMessage) => {
    const error = new RequestError('method-not-allowed', 'this server is not a proxy', { allow: '' })
    refuse(open.get(request.socket) as Connection, error, request)
  })
  server.on('clientError', (error: Error & { code?: string }, socket: Socket) => {
    const connection = open.get(socket) as Connection
    // Each further packet is another parser error, and what follows the last request gets no answer.
    if (connection.isFailed || !socket.writable || error.code === 'HPE_CLOSED_CONNECTION') return
    const [code, message] = parserFailures[`${error.code}`] ?? [
      'bad-request',
      'the request is not well-formed HTTP',
    ]
    // We delayed the requests held back ourselves, and a body of lines has no time limit.
    const last = connection.lastResponse?.req
    const isTimedByLine = last !== undefined && !last.complete && timedByLine.has(last)
    if (code === 'request-timeout' && (connection.isHeldBack || isTimedByLine)) return
    refuse(connection, new RequestError(code, message))
  })
}

/** Answers the last request of a connection with a failure, after those before it, and closes the connection. */
function failInTurn(connection: Connection, error: RequestError, answer: () => void): void {
  connection.isFailed = true
  const { lastResponse: last, socket } = connection
  if (last === undefined || last.req.complete) {
    afterFinish(last, () => {
      answer()
      endAndLinger(socket)
    })
    return
  }
  // The body of the last request is broken, so its reader answers.
  if (last.req.listenerCount('error') > 0) last.req.emit('error', error)
  else tellNextListener(last.req, error)
  afterFinish(last, () => endAndLinger(socket))
}

/** Fails a body that is not read yet, because the request waits for its turn or for a token lookup. */
function tellNextListener(request: IncomingMessage, error: RequestError): void {
  const tell = (event: string | symbol) => {
    if (event !== 'error') return
    request.off('newListener', tell)
    // The request may have been refused for another reason by then.
    setImmediate(() => request.listenerCount('error') > 0 && request.emit('error', error))
  }
  request.on('newListener', tell)
}

function afterFinish(response: ServerResponse | undefined, then: () => void): void {
  if (response === undefined || response.writableFinished) then()
  else response.once('finish', then)
}

function writeFailureTo(socket: Socket, { status, headers, body }: Failure, reqId: string): void {
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
  socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${content}`)
}

/** Discards what still arrives until the client closes: closing with unread bytes could lose the answer. */
function endAndLinger(socket: Socket): void {
  socket.end()
  // Node's parser would make requests of it that wait forever.
  socket.removeAllListeners('data')
  socket.on('data', () => {})
  socket.resume()
  const cut = setTimeout(() => socket.destroy(), lingerTimeoutMs)
  socket.once('close', () => clearTimeout(cut))
}

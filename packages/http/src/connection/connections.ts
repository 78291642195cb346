import type { RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { RequestError } from '../errors/failures.ts'
import { lingerTimeoutMs } from '../limits.ts'
import { bodyOf, receiveBody } from '../request/body.ts'

/**
 * The connections of a server. Fastify has one request of each at a time, whatever its client sends ahead.
 *
 * | a connection | `current` | `waiting` | is read                                            |
 * | ------------ | --------- | --------- | -------------------------------------------------- |
 * | idle         | none      | none      | yes                                                |
 * | serving      | one       | none      | while the body has room                            |
 * | ahead        | one       | some      | no: one packet may hold 2,400 requests             |
 * | refused      | any       | any       | as above: later requests are dropped               |
 *
 * A packet of tiny requests or chunks takes 30 ms to parse. After it a connection waits for its turn.
 * Must never happen: an answer after the refusal. Bytes that are read, but are neither counted nor dropped. A turn of the
 * event loop that is long because it parses packets of many connections.
 */
export class Connections {
  readonly open = new Map<Socket, Connection>()
  readonly handle: RequestListener
  /** Requests that wait on all of them. */
  waitingCount = 0
  #longReads = 0
  #paused: Connection[] = []
  readonly #waitingForTurn: Connection[] = []

  constructor(handle: RequestListener) {
    this.handle = handle
  }

  add(socket: Socket): Connection {
    const connection = new Connection(socket, this)
    this.open.set(socket, connection)
    socket.once('close', () => {
      this.open.delete(socket)
      this.waitingCount -= connection.waiting.splice(0).length
    })
    return connection
  }

  /** Lets a connection take its turn later. Beyond the limit no other is read in this turn of the event loop either. */
  takeTurnLater(connection: Connection): void {
    if (this.#waitingForTurn.push(connection) === 1) setImmediate(this.#nextTurn)
    if (++this.#longReads !== longReadsMax + 1) return
    this.#paused = [...this.open.values()].filter(({ socket }) => !socket.isPaused())
    for (const { socket } of this.#paused) socket.pause()
  }

  readonly #nextTurn = (): void => {
    const [paused, turns] = [this.#paused, this.#waitingForTurn.splice(0, longReadsMax)]
    this.#longReads = 0
    this.#paused = []
    for (const connection of turns) connection.takeTurn()
    for (const connection of paused) connection.resumeOrPause()
    if (this.#waitingForTurn.length > 0) setImmediate(this.#nextTurn)
  }
}

/** Packets that take long to parse, in one turn of the event loop. */
const longReadsMax = 2
/** What a connection parses before it waits for its turn: bytes, and for each request or chunk `pieceBytes` besides. */
const turnBytesMax = 16 * 1024
const pieceBytes = 64
/** Pipelined requests that may always wait. */
const waitingPerConnection = 16
/** Those that wait on all connections, about 4 kB each. Beyond it, who sent more than may always wait is cut. */
const waitingMax = 5_000

export class Connection {
  readonly socket: Socket
  /** Of the request that is being answered. */
  current: ServerResponse | undefined
  /** Of the requests behind it. */
  readonly waiting: ServerResponse[] = []
  waitsForTurn = false
  readonly #all: Connections
  #readBytes = 0
  #sendRefusal: (() => void) | undefined

  constructor(socket: Socket, all: Connections) {
    this.socket = socket
    this.#all = all
  }

  /** Takes a request whose header section has arrived. */
  receive(response: ServerResponse): void {
    const { headers, httpVersion } = response.req
    const isRefused = this.#sendRefusal !== undefined
    if (headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined) {
      const body = receiveBody(response.req, this)
      if (isRefused) body.drop()
    }
    // What follows may be of another protocol, or be read as one request by a proxy and as two by Node (RFC 9112, 6.1).
    if (headers.upgrade !== undefined || (headers['transfer-encoding'] && httpVersion === '1.0'))
      response.setHeader('connection', 'close')
    if (this.current === undefined) {
      this.#readBytes = 0
      this.#begin(response)
      if (!isRefused) this.#all.handle(response.req, response)
      return
    }
    // The refusal is the last answer.
    if (isRefused) {
      this.#pause()
      return
    }
    this.#all.waitingCount++
    this.waiting.push(response)
    if (this.#all.waitingCount > waitingMax && this.waiting.length > waitingPerConnection)
      this.socket.destroy()
    this.note(0)
    if (this.waiting.length === 1) this.resumeOrPause()
  }

  #begin(response: ServerResponse): void {
    this.current = response
    response.on('close', this.#beginNext)
  }

  readonly #beginNext = (): void => {
    this.current = undefined
    if (this.socket.destroyed) return
    const next = this.waiting.shift()
    if (next === undefined) {
      this.#sendRefusal?.()
      return
    }
    this.#all.waitingCount--
    this.#begin(next)
    // In a turn of its own, so that other connections have theirs.
    setImmediate(() => {
      if (!this.socket.writable) return
      this.resumeOrPause()
      this.#all.handle(next.req, next)
    })
  }

  /** Notes that a request or a chunk was parsed. */
  note(bytes: number): void {
    this.#readBytes += bytes + pieceBytes
    if (this.waitsForTurn || this.#readBytes <= turnBytesMax) return
    this.waitsForTurn = true
    this.#all.takeTurnLater(this)
  }

  takeTurn(): void {
    this.waitsForTurn = false
    this.#readBytes = 0
    if (this.current !== undefined) bodyOf(this.current.req)?.tell()
    this.resumeOrPause()
  }

  /** Reads on, but pauses while something that has arrived waits. */
  resumeOrPause(): void {
    const hasRoom = this.current === undefined || bodyOf(this.current.req)?.hasRoom !== false
    if (hasRoom && !this.waitsForTurn && this.waiting.length === 0) this.socket.resume()
    else this.#pause()
  }

  /** In a microtask, as Node resumes the socket after each request and chunk that it has parsed. */
  #pause(): void {
    queueMicrotask(() => this.socket.pause())
  }

  /** Whether it is the server's turn: the client has neither bytes to send nor an answer to read. */
  get waitsForServer(): boolean {
    const { socket, current } = this
    if (current === undefined || current.writableEnded || socket.writableLength > 0) return false
    return current.req.complete || !bodyOf(current.req)?.waitsForClient
  }

  /** Ends the connection with what `write` returns, after the answers to what has arrived. */
  refuse(error: RequestError, write: () => string): void {
    if (this.#sendRefusal !== undefined) return
    const last = this.waiting.at(-1) ?? this.current
    // The answer is that of the request.
    const isInBody = last?.req.complete === false
    this.#sendRefusal = () => {
      if (!isInBody) this.socket.write(write())
      endSocket(this.socket)
    }
    if (isInBody) bodyOf(last.req)?.fail(error)
    if (this.current === undefined) this.#sendRefusal()
  }
}

/** Ends a connection whose client may still send: closing with unread bytes at once could lose the answer. */
function endSocket(socket: Socket): void {
  socket.end()
  socket.resume()
  const cut = setTimeout(() => socket.destroy(), lingerTimeoutMs)
  socket.once('close', () => clearTimeout(cut))
}

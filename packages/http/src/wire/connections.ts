import type { RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { RequestError } from '../errors/error-numbers.ts'
import { lingerTimeoutMs } from '../limits.ts'
import { Body, bodyOf } from './body.ts'

/**
 * A turn of the event loop is full once more connections than this began to rest in it.
 * As many resting connections read on in the next turn.
 */
const restsPerTurnMax = 2
/**
 * How many bytes a connection parses before it rests. Each request or chunk counts as
 * `pieceBytes` more.
 */
const restAfterBytes = 16 * 1024
const pieceBytes = 64
/** How many pipelined requests of a connection may always wait. */
const waitingPerConnection = 16
/**
 * How many pipelined requests may wait on all connections together, at about 4 kB each.
 * Above this, a connection with more than `waitingPerConnection` of them is closed.
 */
const waitingMax = 5_000

/**
 * The connections of a server. Each hands Fastify one request at a time, however many its
 * client sends ahead. A connection is in one of four states:
 *
 * - Idle: no request. It is read.
 * - Serving: one request is answered (`current`). It is read while the body has room.
 * - Ahead: more requests wait (`waiting`). It is not read, because one packet may hold
 *   2,400 requests.
 * - Refused: an error ends it after the answers to what has arrived. Later requests are
 *   dropped.
 *
 * A packet of tiny requests or chunks takes 30 ms to parse. So after `restAfterBytes` a
 * connection rests, in any state: it is not read until a later turn of the event loop.
 * Three things must never happen:
 *
 * - An answer follows the refusal.
 * - Bytes are read, but are neither counted nor dropped.
 * - A turn of the event loop parses packets of many connections.
 */
export class Connections {
  readonly open = new Map<Socket, Connection>()
  readonly handle: RequestListener
  /** How many requests wait on all connections. */
  waitingCount = 0
  /** How many connections began to rest in this turn of the event loop. */
  #restsInTurn = 0
  readonly #resting: Connection[] = []

  constructor(handle: RequestListener) {
    this.handle = handle
  }

  /** Whether no connection is read in this turn of the event loop any more. */
  get isTurnFull(): boolean {
    return this.#restsInTurn > restsPerTurnMax
  }

  add(socket: Socket): void {
    const connection = new Connection(socket, this)
    this.open.set(socket, connection)
    socket.once('close', () => {
      this.open.delete(socket)
      this.waitingCount -= connection.waiting.splice(0).length
    })
  }

  /** Lets a connection rest, and read on in a later turn. */
  rest(connection: Connection): void {
    const isFirst = this.#resting.push(connection) === 1
    if (isFirst) {
      setImmediate(this.#nextTurn)
    }
    this.#restsInTurn++
    if (this.isTurnFull) {
      for (const each of this.open.values()) {
        each.resumeOrPause()
      }
    }
  }

  readonly #nextTurn = (): void => {
    // A full turn has paused all connections, so all may read on.
    const paused = this.isTurnFull ? this.open.values() : []
    const rested = this.#resting.splice(0, restsPerTurnMax)
    this.#restsInTurn = 0
    for (const connection of rested) {
      connection.readBytes = 0
    }
    for (const connection of [...rested, ...paused]) {
      connection.resumeOrPause()
    }
    if (this.#resting.length > 0) {
      setImmediate(this.#nextTurn)
    }
  }
}

export class Connection {
  readonly socket: Socket
  /** The response to the request that is being answered. */
  current: ServerResponse | undefined
  /** The responses to the requests behind it. */
  readonly waiting: ServerResponse[] = []
  /** How much was parsed since the connection rested or a request began. */
  readBytes = 0
  readonly #all: Connections
  /** Sends the last answer, and ends the connection. */
  #sendRefusal: (() => void) | undefined
  /**
   * How many requests were dropped behind the refusal. Those that arrived before it left
   * no longer count once it has.
   */
  #droppedRequests = 0

  constructor(socket: Socket, all: Connections) {
    this.socket = socket
    this.#all = all
  }

  /** The response to the request that arrived last, unless it has been given. */
  get last(): ServerResponse | undefined {
    return this.waiting.at(-1) ?? this.current
  }

  /**
   * Handles a request whose header section has arrived, at once or in its turn. Drops it
   * behind a refusal.
   *
   * @param response the answer to it, not yet begun
   */
  addRequest(response: ServerResponse): void {
    const { headers, httpVersion } = response.req
    const hasBody =
      headers['content-length'] !== undefined ||
      headers['transfer-encoding'] !== undefined
    const body = hasBody ? new Body(response.req, response, this) : undefined
    // Close the connection after this answer. The bytes that follow may belong to another
    // protocol, or a proxy may see one request where Node sees two (RFC 9112, 6.1).
    const isUpgrade = headers.upgrade !== undefined
    const isAmbiguous = headers['transfer-encoding'] && httpVersion === '1.0'
    if (isUpgrade || isAmbiguous) {
      response.setHeader('connection', 'close')
    }

    if (this.#sendRefusal !== undefined) {
      // The refusal is the last answer, so this request gets none.
      body?.drop()
      this.#droppedRequests++
    } else if (this.current === undefined) {
      this.readBytes = 0
      this.#begin(response)
      this.#all.handle(response.req, response)
    } else {
      this.#wait(response)
    }
    this.resumeOrPause()
  }

  /** Lets a request wait for those before it. */
  #wait(response: ServerResponse) {
    this.waiting.push(response)
    this.#all.waitingCount++
    const isTooFarAhead = this.waiting.length > waitingPerConnection
    if (isTooFarAhead && this.#all.waitingCount > waitingMax) {
      this.socket.destroy()
    }
    this.notePiece(0)
  }

  #begin(response: ServerResponse) {
    this.current = response
    response.on('close', this.#beginNext)
  }

  readonly #beginNext = (): void => {
    this.current = undefined
    if (this.socket.destroyed) {
      return
    }
    const next = this.waiting.shift()
    if (next === undefined) {
      this.#sendRefusal?.()
      return
    }
    this.#all.waitingCount--
    this.#begin(next)
    // A later turn of the event loop handles it, so that other connections get theirs.
    setImmediate(() => {
      if (!this.socket.writable) {
        return
      }
      this.resumeOrPause()
      this.#all.handle(next.req, next)
    })
  }

  /** Notes that a request or a chunk was parsed, with this many bytes of a body. */
  notePiece(bytes: number): void {
    const wasResting = this.#isResting
    this.readBytes += bytes + pieceBytes
    if (this.#isResting && !wasResting) {
      this.#all.rest(this)
    }
  }

  get #isResting(): boolean {
    return this.readBytes > restAfterBytes
  }

  /** Reads on, but pauses while something that has arrived waits. */
  resumeOrPause(): void {
    if (this.#mayRead) {
      this.socket.resume()
      return
    }
    // Pause in a microtask, because Node resumes the socket after each request and chunk.
    queueMicrotask(this.#pauseIfStillNeeded)
  }

  readonly #pauseIfStillNeeded = (): void => {
    if (!this.#mayRead) {
      this.socket.pause()
    }
  }

  get #mayRead(): boolean {
    if (this.#isResting || this.#all.isTurnFull) {
      return false
    }
    // The first request behind a refusal is read to its end, because its client may send
    // all of it before it reads the refusal.
    if (this.#droppedRequests > 1 || this.waiting.length > 0) {
      return false
    }
    const body = this.current && bodyOf(this.current.req)
    return body?.hasRoom ?? true
  }

  /**
   * Whether the silence of its client ends no connection: the server has yet to answer or
   * to read on, or the reader of the body itself limits the client's time.
   */
  get mayBeSilent(): boolean {
    const { socket, current } = this
    if (current === undefined || current.writableEnded || socket.writableLength > 0) {
      return false
    }
    return current.req.complete || !bodyOf(current.req)?.waitsForClient
  }

  /**
   * Ends the connection with a last answer, after the answers to what has arrived.
   *
   * @param formatAnswer returns the bytes of the last answer
   */
  refuse(error: RequestError, formatAnswer: () => string): void {
    if (this.#sendRefusal !== undefined) {
      return
    }
    const { last, socket } = this
    // A request in the middle of its body gets the refusal as its answer.
    const isInBody = last?.req.complete === false
    this.#sendRefusal = () => {
      if (!isInBody) {
        socket.write(formatAnswer())
      }
      socket.end()
      // Reads on for a while, because closing with unread bytes could lose the answer.
      this.#droppedRequests = 0
      socket.resume()
      const cut = setTimeout(() => socket.destroy(), lingerTimeoutMs)
      socket.once('close', () => clearTimeout(cut))
    }
    if (isInBody) {
      bodyOf(last.req)?.endEarly(error)
    }
    if (this.current === undefined) {
      this.#sendRefusal()
    }
  }
}

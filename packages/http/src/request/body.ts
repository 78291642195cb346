import type { Readable } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import { countedBytesMin } from '../budget.ts'
import { RequestError } from '../errors/failures.ts'

/** What a body arrives over. */
interface Carrier {
  readonly waitsForTurn: boolean
  /** Notes that a chunk was parsed. */
  note(bytes: number): void
  /** Reads on while {@link Body.hasRoom}, and pauses otherwise. */
  resumeOrPause(): void
}

/** A property, as a WeakMap with an entry for each request would cost the garbage collector a fifth of the time. */
const arriving = Symbol('body')

type Receiving = Readable & { [arriving]?: Body }

/** Lets a body flow into a buffer, from its arrival. */
export function receiveBody(stream: Receiving, carrier: Carrier): Body {
  const body = new Body(carrier)
  stream[arriving] = body
  stream.on('data', onData).on('end', onEnd).on('error', onError)
  return body
}

export const bodyOf = (stream: Receiving): Body | undefined => stream[arriving]

function onData(this: Receiving, chunk: Buffer): void {
  this[arriving]?.add(chunk)
}
function onEnd(this: Receiving): void {
  this[arriving]?.end()
}
function onError(this: Receiving, error: Error): void {
  this[arriving]?.fail(error)
}

/** Reads a whole body, as Fastify's parser. */
export function readBody(
  { headers, server }: FastifyRequest,
  stream: Readable,
  done: (error: Error | null, body?: Buffer) => void,
): void {
  const body = bodyOf(stream) as Body
  const { bodyLimit = 0 } = server.initialConfig
  const readMore = () => {
    try {
      body.check()
      if (body.length > bodyLimit || Number(headers['content-length']) > bodyLimit)
        throw new RequestError('body-too-large', `the body is longer than ${bodyLimit} bytes`)
    } catch (error) {
      body.drop()
      done(error as RequestError)
      return
    }
    if (body.isEnded) done(null, body.take(body.length))
    else body.waitForMore(Number.POSITIVE_INFINITY, readMore)
  }
  readMore()
}

/**
 * A body on its way, in one buffer: Node would keep an object of 400 bytes for each chunk, even for one of a single byte.
 *
 * | a body   | from                | room                   | its bytes                             |
 * | -------- | ------------------- | ---------------------- | ------------------------------------- |
 * | arriving | `receiveBody`       | 16 KiB                 | are allowed to every connection       |
 * | admitted | `countWith`         | 16 KiB                 | are counted twice, as an answer may repeat them |
 * | read     | `waitForMore`       | as its reader says     | are taken, in order, once             |
 * | dropped  | `drop`              | any                    | are forgotten                         |
 *
 * It ends once, whole or with an error. Never: more than its room and a packet in memory.
 */
export class Body {
  /** Whether its reader limits its time. */
  isTimed = false
  /** Whether all has arrived. */
  isEnded = false
  readonly #carrier: Carrier
  #bytes = new Bytes()
  #lengthMax = countedBytesMin
  #error: RequestError | undefined
  #isDropped = false
  #held = 0
  #setHeld: ((bytes: number) => void) | undefined
  #onMore: (() => void) | undefined

  constructor(carrier: Carrier) {
    this.#carrier = carrier
  }

  /** The number of bytes that have arrived and were not taken. */
  get length(): number {
    return this.#bytes.length
  }

  get hasRoom(): boolean {
    return this.#isDropped || this.length <= this.#lengthMax
  }

  /** Whether it is read, and the client has its time to send more. */
  get waitsForClient(): boolean {
    return this.#onMore !== undefined && !this.isTimed
  }

  add(chunk: Buffer): void {
    this.#carrier.note(chunk.length)
    if (!this.#isDropped) {
      this.#bytes.append(chunk)
      this.#count()
    }
    if (!this.#carrier.waitsForTurn) this.tell()
    if (this.#carrier.waitsForTurn || !this.hasRoom) this.#carrier.resumeOrPause()
  }

  end(): void {
    this.isEnded = true
    this.tell()
  }

  /** Ends the body with an error, such as that of a reset connection. */
  fail(error: Error): void {
    if (this.isEnded || this.#error !== undefined) return
    this.#error =
      error instanceof RequestError ? error : new RequestError('bad-request', 'the body ended early')
    this.tell()
  }

  /** Discards what has arrived and what still arrives. */
  drop(): void {
    this.#isDropped = true
    this.#bytes = new Bytes()
    this.#onMore = undefined
    this.#count()
    this.#carrier.resumeOrPause()
  }

  /** @throws RequestError that ended the body */
  check(): void {
    if (this.#error !== undefined) throw this.#error
  }

  /** @param setHeld counts the memory for this body, twice because the answer may repeat it */
  countWith(setHeld: (bytes: number) => void): void {
    this.#setHeld = setHeld
    this.#count()
  }

  /** Reads on, up to this length and a packet. Calls back once, when more has arrived, at the end or at an error. */
  waitForMore(lengthMax: number, onMore: () => void): void {
    this.#lengthMax = lengthMax
    this.#onMore = onMore
    this.#carrier.resumeOrPause()
  }

  /** Tells its reader that there is more. */
  tell(): void {
    const onMore = this.#onMore
    this.#onMore = undefined
    onMore?.()
  }

  /** Returns the length through the last such byte, 0 without one. */
  lengthThrough(byte: number): number {
    return this.#bytes.lengthThrough(byte)
  }

  /** Removes and returns this many bytes. */
  take(length: number): Buffer {
    const taken = this.#bytes.take(length)
    if (!this.isEnded) {
      this.#count()
      this.#carrier.resumeOrPause()
    }
    return taken
  }

  #count(): void {
    // In steps, as a body may arrive byte by byte.
    const steps = Math.ceil(this.length / countedBytesMin)
    const held = steps > 1 ? 2 * steps * countedBytesMin : 0
    if (this.#setHeld === undefined || held === this.#held) return
    try {
      this.#setHeld(held)
      this.#held = held
    } catch (error) {
      this.fail(error as RequestError)
    }
  }
}

const nothing: Buffer = Buffer.alloc(0)

/** A buffer that grows behind and shrinks in front. */
class Bytes {
  length = 0
  #buffer = nothing

  append(chunk: Buffer): void {
    const length = this.length + chunk.length
    // Most bodies have one chunk, and are not copied.
    if (this.length === 0) this.#buffer = chunk
    else {
      if (length > this.#buffer.length) {
        const longer = Buffer.allocUnsafe(Math.max(length, 2 * this.length))
        this.#buffer.copy(longer, 0, 0, this.length)
        this.#buffer = longer
      }
      chunk.copy(this.#buffer, this.length)
    }
    this.length = length
  }

  lengthThrough(byte: number): number {
    return this.#buffer.subarray(0, this.length).lastIndexOf(byte) + 1
  }

  take(length: number): Buffer {
    const taken = length === this.#buffer.length ? this.#buffer : this.#buffer.subarray(0, length)
    if (length === this.length) {
      this.length = 0
      this.#buffer = nothing
      return taken
    }
    const rest = this.#buffer.subarray(length, this.length)
    this.length = rest.length
    // A copy: a slice would keep what was taken in memory.
    this.#buffer = Buffer.from(rest)
    return taken
  }
}

import { isUtf8 } from 'node:buffer'
import type { Readable } from 'node:stream'
import { parseJsonRecord } from '@plant-store/json'
import type { FastifyRequest } from 'fastify'
import { countedBytesMin } from '../budget.ts'
import { RequestError } from '../errors/failures.ts'

/** What stops and continues the arrival of a body: its stream, or the connection below it. */
interface Source {
  pause(): void
  resume(): void
  /** Notes that a packet took long to parse. */
  noteLongRead?(): void
}

/** A property, as a WeakMap with an entry for each request would cost the garbage collector a fifth of the time. */
const arriving = Symbol('body')

type Receiving = Readable & { [arriving]?: Body }

/** Lets a body flow into a buffer, from its arrival. */
export function receiveBody(stream: Receiving, source: Source): Body {
  stream[arriving] = new Body(stream, source)
  return stream[arriving]
}

export const bodyOf = (stream: Receiving): Body | undefined => stream[arriving]

const nothing: Buffer = Buffer.alloc(0)

/**
 * A body on its way. It is copied into one buffer, because Node would keep an object of 400 bytes for each chunk, even for one
 * of a single byte.
 *
 * `receiveBody` starts it at the arrival of the request, and it stops after 16 KiB, with the packet that crosses them. Once
 * the checks have passed, {@link countWith} counts its memory, and `readBody` or `readLines` read on.
 */
export class Body {
  /** Whether its consumer limits its time. */
  isTimed = false
  /** The number of bytes that have arrived and were not taken. */
  length = 0
  /** Whether all has arrived. */
  isEnded = false
  readonly #source: Source
  #bytes = nothing
  #received = 0
  #chunks = 0
  #lengthMax = countedBytesMin
  #error: RequestError | undefined
  #isDropped = false
  #isDelayed = false
  #held = 0
  #setHeld: ((bytes: number) => void) | undefined
  #onMore: (() => void) | undefined

  constructor(stream: Readable, source: Source) {
    this.#source = source
    stream
      .on('data', (chunk: Buffer | string) => this.#add(chunk))
      .on('end', () => {
        this.isEnded = true
        this.#callBack()
      })
      .on('error', error => this.fail(error))
  }

  /** Whether it is read, and the client has its time to send more. */
  get waitsForClient(): boolean {
    return this.#onMore !== undefined && !this.isTimed
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
    this.#readOn()
  }

  /** Ends the body with an error, such as that of a reset connection. */
  fail(error: Error): void {
    if (this.isEnded || this.#error !== undefined) return
    this.#error =
      error instanceof RequestError ? error : new RequestError('bad-request', 'the body ended early')
    this.#callBack()
  }

  /** Discards what has arrived and what still arrives. */
  drop(): void {
    this.#isDropped = true
    this.#bytes = nothing
    this.length = 0
    this.#onMore = undefined
    this.#count()
  }

  /** Returns the length through the last such byte, 0 without one. */
  lengthThrough(byte: number): number {
    return this.#bytes.subarray(0, this.length).lastIndexOf(byte) + 1
  }

  /** Removes and returns this many bytes. */
  take(length: number): Buffer {
    const taken = this.#bytes.subarray(0, length)
    this.length -= length
    this.#bytes =
      this.length === 0 ? nothing : Buffer.from(this.#bytes.subarray(length, length + this.length))
    if (!this.isEnded) this.#count()
    this.#readOn()
    return taken
  }

  #add(chunk: Buffer | string): void {
    // A stream that a hook of the host substituted may yield text.
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
    this.#received += bytes.length
    const isLong = this.#received > countedBytesMin || ++this.#chunks > shortChunksMax
    if (isLong) this.#readLater()
    if (this.#isDropped) return
    const length = this.length + bytes.length
    // Most bodies have one chunk, and are not copied.
    if (this.length === 0) this.#bytes = bytes
    else {
      if (length > this.#bytes.length) {
        const longer = Buffer.allocUnsafe(Math.max(length, 2 * this.length))
        this.#bytes.copy(longer, 0, 0, this.length)
        this.#bytes = longer
      }
      bytes.copy(this.#bytes, this.length)
    }
    this.length = length
    this.#count()
    if (!isLong) this.#callBack()
  }

  #callBack(): void {
    const onMore = this.#onMore
    this.#onMore = undefined
    onMore?.()
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

  /** Reads a long body packet by packet, so that other connections have their turn. */
  #readLater(): void {
    // Again and again, as Node reads on after each chunk.
    this.#source.pause()
    if (this.#isDelayed) return
    this.#isDelayed = true
    this.#source.noteLongRead?.()
    inLaterTurn(() => {
      this.#isDelayed = false
      this.#callBack()
      this.#readOn()
    })
  }

  #readOn(): void {
    if (!this.#isDelayed && this.length <= this.#lengthMax) this.#source.resume()
  }
}

/** Packets of long bodies in a turn of the event loop. One of tiny chunks takes 30 ms. */
export const longReadsMax = 2
/** Chunks of a body that is not long. A packet may have 10,900. */
const shortChunksMax = 256
const delayed: (() => void)[] = []

function inLaterTurn(readOn: () => void): void {
  if (delayed.push(readOn) === 1) setImmediate(readSome)
}

function readSome(): void {
  const some = delayed.splice(0, longReadsMax)
  if (delayed.length > 0) setImmediate(readSome)
  for (const readOn of some) readOn()
}

/** Reads a whole body, as Fastify's parser. */
export function readBody(
  { headers, routeOptions: { bodyLimit } }: FastifyRequest,
  stream: Readable,
  done: (error: Error | null, body?: Buffer) => void,
): void {
  const body = bodyOf(stream) as Body
  const look = () => {
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
    else body.waitForMore(Number.POSITIVE_INFINITY, look)
  }
  look()
}

/** @throws RequestError `bad-json` */
export function readJsonBody({ body }: FastifyRequest): unknown {
  // As `readBody` has left it.
  const bytes = body as Buffer | undefined
  if (bytes === undefined || bytes.length === 0) throw new RequestError('bad-json', 'the request has no body')
  return readJson(bytes, 'body')
}

export function readJson(bytes: Buffer, what: 'body' | 'line'): unknown {
  if (!isUtf8(bytes)) throw new RequestError('bad-json', `the ${what} is not valid UTF-8`)
  try {
    return parseJsonRecord(bytes.toString())
  } catch (error) {
    throw new RequestError('bad-json', `the ${what} is not valid JSON: ${(error as Error).message}`)
  }
}

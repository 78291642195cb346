import type { ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import { RequestError } from '../errors/error-numbers.ts'
import { type Budget, uncountedBytesMax } from './budget.ts'

/** The connection that a body arrives over. */
interface Carrier {
  /** Notes that a chunk was parsed. */
  notePiece(bytes: number): void
  /** Reads on while {@link Body.hasRoom}, and pauses otherwise. */
  resumeOrPause(): void
}

/**
 * The property of a request that holds its body. A WeakMap with an entry for each request
 * would cost a fifth of the processor time in garbage collection.
 */
const arriving = Symbol('body')

type Receiving = Readable & { [arriving]?: Body }

export const bodyOf = (stream: Receiving): Body | undefined => stream[arriving]

// All bodies share these functions, because closures would cost every request memory.
function onData(this: Receiving, chunk: Buffer) {
  this[arriving]?.add(chunk)
}
function onEnd(this: Receiving) {
  this[arriving]?.end()
}
function onError(this: Receiving) {
  // The connection was reset, for example.
  this[arriving]?.endEarly(new RequestError('bad-request', 'the body ended early'))
}

const nothing: Buffer = Buffer.alloc(0)

/**
 * A body on its way, in one buffer. Node would keep an object of 400 bytes for each
 * chunk, even for a chunk of a single byte. A body is in one of four states:
 *
 * - Arriving, from its header section on. It has room for 16 KiB, which every connection
 *   may use.
 * - Counted, from `startCounting` on. It has the same room. More bytes than that count
 *   twice, because an answer may repeat them.
 * - Read, from `waitForMore` on. Its reader sets the room, and takes the bytes in order,
 *   once.
 * - Dropped, from `drop` on. Its bytes are forgotten.
 *
 * A body ends once, whole or early. It must never hold more than its room and one packet,
 * in a buffer of at most twice that.
 */
export class Body {
  /** The number of bytes that have arrived and are not taken yet. */
  length = 0
  /** Whether its reader limits its time, as that of a batch does for each line. */
  isTimedByReader = false
  /** Whether all has arrived. */
  isWhole = false
  /** Why it is refused: for example, it ended early, or the memory has no room for it. */
  error: RequestError | undefined
  readonly #response: ServerResponse
  readonly #carrier: Carrier
  #buffer = nothing
  #lengthMax = uncountedBytesMax
  #isDropped = false
  #budget: Budget | undefined
  #onMore: (() => void) | undefined
  /** Whether the client waits for 100 Continue. */
  #waitsForContinue = false

  /** @param response the answer to the request whose body this is */
  constructor(stream: Receiving, response: ServerResponse, carrier: Carrier) {
    this.#response = response
    this.#carrier = carrier
    stream[arriving] = this
    stream.on('data', onData).on('end', onEnd).on('error', onError)
  }

  get hasRoom(): boolean {
    return this.#isDropped || this.length <= this.#lengthMax
  }

  /**
   * Whether the next bytes are up to the client, and the timeout of its connection limits
   * them, not one of the reader.
   */
  get waitsForClient(): boolean {
    return this.#onMore !== undefined && !this.isTimedByReader
  }

  add(chunk: Buffer): void {
    this.#carrier.notePiece(chunk.length)
    if (!this.#isDropped) {
      this.#append(chunk)
    }
    this.#tell()
    this.#carrier.resumeOrPause()
  }

  end(): void {
    this.isWhole = true
    this.#tell()
  }

  /** Ends it with an error, unless all has arrived or it has one. */
  endEarly(error: RequestError): void {
    if (this.isWhole || this.error !== undefined) {
      return
    }
    this.error = error
    this.#tell()
  }

  /** Discards what has arrived and what still arrives. */
  drop(): void {
    this.#isDropped = true
    this.#onMore = undefined
    this.take(this.length)
  }

  /**
   * Counts the bytes from now on.
   *
   * @param budget counts the memory for this body, twice because the answer may repeat it
   * @param waitsForContinue whether the client sends the body only after 100 Continue
   */
  startCounting(budget: Budget, waitsForContinue: boolean): void {
    this.#budget = budget
    this.#waitsForContinue = waitsForContinue
    this.#setHeld()
  }

  /**
   * Reads on, up to this length and a packet. Calls back once: when more has arrived, at
   * the end or at an error.
   */
  waitForMore(lengthMax: number, onMore: () => void): void {
    this.#lengthMax = lengthMax
    this.#onMore = onMore
    if (this.#waitsForContinue) {
      this.#waitsForContinue = false
      this.#response.writeContinue()
    }
    this.#carrier.resumeOrPause()
  }

  /**
   * Returns the length through the last such byte, 0 without one. Once all has arrived,
   * returns the whole length.
   */
  lengthThrough(byte: number): number {
    if (this.isWhole) {
      return this.length
    }
    return this.#buffer.subarray(0, this.length).lastIndexOf(byte) + 1
  }

  /**
   * Removes and returns this many bytes. The bytes of a whole body are counted until its
   * answer has left.
   */
  take(length: number): Buffer {
    const taken =
      length === this.#buffer.length ? this.#buffer : this.#buffer.subarray(0, length)
    // Copy the rest, because a slice would keep the taken bytes in memory.
    this.#buffer =
      length === this.length
        ? nothing
        : Buffer.from(this.#buffer.subarray(length, this.length))
    this.length -= length
    if (!this.isWhole || this.#isDropped) {
      this.#setHeld()
    }
    this.#carrier.resumeOrPause()
    return taken
  }

  #append(chunk: Buffer) {
    const length = this.length + chunk.length
    if (this.length === 0) {
      // Most bodies have one chunk, which need not be copied.
      this.#buffer = chunk
    } else {
      if (length > this.#buffer.length) {
        const longer = Buffer.allocUnsafe(Math.max(length, 2 * this.length))
        this.#buffer.copy(longer, 0, 0, this.length)
        this.#buffer = longer
      }
      chunk.copy(this.#buffer, this.length)
    }
    this.length = length
    this.#setHeld()
  }

  #setHeld() {
    try {
      const bytes = this.length > uncountedBytesMax ? 2 * this.length : 0
      this.#budget?.setHeld(this.#response, bytes)
    } catch (error) {
      this.error ??= error as RequestError
    }
  }

  /** Tells its reader that there is more. */
  #tell() {
    const onMore = this.#onMore
    this.#onMore = undefined
    onMore?.()
  }
}

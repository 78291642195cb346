import type { Readable } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import { failures, RequestError } from '../answer/failures.ts'

/** Reads a whole body. */
export function readBody(
  { headers, routeOptions }: FastifyRequest,
  body: Readable,
  done: (error: Error | null, body?: Buffer) => void,
): void {
  const { bodyLimit } = routeOptions
  const bytes = createPieces()
  const end = (error?: Error | null) => {
    body.off('data', add).off('end', end).off('error', end)
    if (error) done(asRequestError(error))
    else done(null, bytes.take())
  }
  const tooLarge = () => new RequestError('body-too-large', failures['body-too-large'][1])
  const add = (piece: Buffer | string) => {
    bytes.add(toBuffer(piece))
    if (bytes.length() > bodyLimit) end(tooLarge())
  }
  if (Number(headers['content-length']) > bodyLimit) done(tooLarge())
  else body.on('data', add).on('end', end).on('error', end)
}

/** Returns the error of a body, which may be the one that a reset connection leaves. */
export function asRequestError(error: unknown): RequestError {
  return error instanceof RequestError ? error : new RequestError('bad-request', 'the body ended early')
}

/** A stream that a hook of the host substituted may yield text. */
export function toBuffer(piece: Buffer | string): Buffer {
  return typeof piece === 'string' ? Buffer.from(piece) : piece
}

const blockBytesMax = 64 * 1024
/** A piece as long as that is kept as it is: a copy would leave garbage of the same length. */
const longPieceBytes = 16 * 1024

const nothing = Buffer.alloc(0)

/** Collects pieces, small ones in blocks. Each kept as it arrives takes 400 bytes of memory, even if it has one. */
export function createPieces() {
  /** Most bodies have no other, and are not copied. */
  let first: Buffer | undefined
  let parts: Buffer[] = []
  let block = nothing
  /** What is used of the block, and how much of that is among the parts. */
  let used = 0
  let kept = 0
  let length = 0
  const keepUsed = () => {
    parts.push(block.subarray(kept, used))
    kept = used
  }
  const addSmall = (piece: Buffer) => {
    if (piece.length > block.length - used) {
      keepUsed()
      block = Buffer.allocUnsafe(Math.max(piece.length, Math.min(length, blockBytesMax)))
      used = 0
      kept = 0
    }
    used += piece.copy(block, used)
  }
  const addAfter = (piece: Buffer) => {
    if (piece.length < longPieceBytes) addSmall(piece)
    else {
      keepUsed()
      parts.push(piece)
    }
  }
  return {
    add(piece: Buffer): void {
      if (length === 0) first = piece
      else {
        if (first !== undefined) addAfter(first)
        first = undefined
        addAfter(piece)
      }
      length += piece.length
    },
    length: () => length,
    /** Returns the collected bytes, and starts again. */
    take(): Buffer {
      keepUsed()
      const whole = first ?? Buffer.concat(parts, length)
      first = undefined
      parts = []
      block = nothing
      used = 0
      kept = 0
      length = 0
      return whole
    },
  }
}

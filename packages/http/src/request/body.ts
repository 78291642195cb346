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

/** Collects pieces in blocks. Each kept as it arrives takes 400 bytes of memory, even if it has one. */
export function createPieces() {
  let blocks: Buffer[] = []
  let block = Buffer.alloc(0)
  let used = 0
  let length = 0
  return {
    add(piece: Buffer): void {
      const fitting = piece.copy(block, used)
      used += fitting
      length += piece.length
      const rest = piece.length - fitting
      if (rest === 0) return
      blocks.push(block)
      block = Buffer.allocUnsafe(Math.max(rest, Math.min(length - rest, blockBytesMax)))
      used = piece.copy(block, 0, fitting)
    },
    length: () => length,
    /** Returns what was added, and starts over. */
    take(): Buffer {
      const whole = Buffer.concat([...blocks, block.subarray(0, used)], length)
      blocks = []
      block = Buffer.alloc(0)
      used = 0
      length = 0
      return whole
    },
  }
}

import type { IncomingMessage, ServerResponse } from 'node:http'
import { RequestError } from '../answer/failures.ts'
import type { ServerLimits } from '../limits.ts'

export const countedBytesMin = 16 * 1024

/** Counts the bytes held in memory for all requests. A single request may hold any number. */
export interface HeldBytes {
  /**
   * Checks before a long answer is made that there may be room.
   * @throws RequestError `too-many-bytes`
   */
  checkRoom(): void
  /**
   * Adds bytes to a request until its answer has left.
   * @throws RequestError `too-many-bytes`
   */
  hold(response: ServerResponse, bytes: number): void
  /** Subtracts bytes from a request. */
  release(response: ServerResponse, bytes: number): void
}

export function countHeldBytes({ heldBytesMax, pageTextBytesMax }: ServerLimits): HeldBytes {
  const shares = new Map<ServerResponse, number>()
  let held = 0
  const check = (bytes: number, share = 0) => {
    if (held > share && held + bytes > heldBytesMax)
      throw new RequestError(
        'too-many-bytes',
        'the server is at its memory limit for bodies and answers: try again later',
      )
  }
  return {
    checkRoom: () => check(pageTextBytesMax),
    hold(response, bytes) {
      if (response.destroyed || response.writableFinished) return
      const share = shares.get(response)
      check(bytes, share)
      held += bytes
      shares.set(response, (share ?? 0) + bytes)
      if (share !== undefined) return
      const release = () => {
        held -= shares.get(response) ?? 0
        shares.delete(response)
      }
      response.once('finish', release).once('close', release)
    },
    release(response, bytes) {
      const share = shares.get(response)
      if (share === undefined) return
      const left = Math.max(0, share - bytes)
      held -= share - left
      shares.set(response, left)
    },
  }
}

/** Counts a body as it arrives, twice because the answer may repeat it. At the limit its reader gets the error. */
export function holdBody(request: IncomingMessage, response: ServerResponse, { hold }: HeldBytes): void {
  // Not a number in chunks.
  if (Number(request.headers['content-length']) < countedBytesMin) return
  const count = (chunk: Buffer) => {
    // The request was refused, and the rest of its body is discarded.
    if (request.listenerCount('error') === 0) return
    try {
      hold(response, 2 * chunk.length)
    } catch (error) {
      request.off('data', count)
      request.emit('error', error)
    }
  }
  request.on('data', count)
}

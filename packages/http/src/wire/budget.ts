import type { ServerResponse } from 'node:http'
import { RequestError } from '../errors/error-numbers.ts'

/** Shorter bodies and answers are not counted: every connection may have one. */
export const countedBytesMin = 16 * 1024

/**
 * Bounds the memory that requests hold together. A single one may hold any number of
 * bytes.
 */
export interface Budget {
  free(): number
  /**
   * Sets the bytes that a request holds until its answer has left.
   *
   * @throws RequestError `too-many-bytes`
   */
  setHeld(response: ServerResponse, bytes: number): void
}

export function createBudget(bytesMax: number): Budget {
  const shares = new Map<ServerResponse, number>()
  let heldBytes = 0

  return {
    free: () => Math.max(0, bytesMax - heldBytes),
    setHeld(response, bytes) {
      const share = shares.get(response) ?? 0
      if (bytes === share) {
        return
      }
      const otherBytes = heldBytes - share
      const fits = otherBytes === 0 || otherBytes + bytes <= bytesMax
      if (bytes > share && !fits) {
        const message =
          'the server is at its memory limit for bodies and answers: try again later'
        throw new RequestError('too-many-bytes', message)
      }
      if (response.destroyed || response.writableFinished) {
        return
      }

      heldBytes = otherBytes + bytes
      if (!shares.has(response)) {
        response.once('close', () => {
          heldBytes -= shares.get(response) ?? 0
          shares.delete(response)
        })
      }
      shares.set(response, bytes)
    },
  }
}

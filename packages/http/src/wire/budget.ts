import type { ServerResponse } from 'node:http'
import { RequestError } from '../errors/error-numbers.ts'

/**
 * Bodies of up to this length, and shorter answers, are not counted: every connection may
 * have one.
 */
export const uncountedBytesMax = 16 * 1024

/** Bounds the memory that requests hold together. */
export type Budget = ReturnType<typeof createBudget>

/** @param bytesMax a single request may exceed it */
export function createBudget(bytesMax: number) {
  const shares = new Map<ServerResponse, number>()
  let heldBytes = 0

  return {
    free: () => Math.max(0, bytesMax - heldBytes),
    /**
     * Sets the bytes that a request holds until its answer has left.
     *
     * @throws RequestError `too-many-bytes`
     */
    setHeld(response: ServerResponse, bytes: number): void {
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

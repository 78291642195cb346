import type { ServerResponse } from 'node:http'
import { RequestError } from '../errors/failures.ts'

/** Bodies and answers below it are not counted: every connection may have one. */
export const countedBytesMin = 16 * 1024

/** Bounds the memory that requests hold together. One alone may hold any number of bytes. */
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
  let held = 0
  return {
    free: () => Math.max(0, bytesMax - held),
    setHeld(response, bytes) {
      const share = shares.get(response)
      if (share === undefined && bytes === 0) {
        return
      }
      const others = held - (share ?? 0)
      if (bytes > (share ?? 0) && others > 0 && others + bytes > bytesMax) {
        throw new RequestError(
          'too-many-bytes',
          'the server is at its memory limit for bodies and answers: try again later',
        )
      }
      if (response.destroyed || response.writableFinished) {
        return
      }
      held = others + bytes
      shares.set(response, bytes)
      if (share !== undefined) {
        return
      }
      response.once('close', () => {
        held -= shares.get(response) as number
        shares.delete(response)
      })
    },
  }
}

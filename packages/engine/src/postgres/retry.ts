import { setTimeout as sleep } from 'node:timers/promises'
import { codeOf } from '../errors.ts'

const serializationFailure = '40001'
const deadlock = '40P01'

/**
 * Returns whether the server kept nothing of the transaction, so that a retry may
 * succeed.
 */
export function wasRolledBack(error: unknown): boolean {
  return [serializationFailure, deadlock].includes(codeOf(error))
}

const attemptsMax = 10

/**
 * Retries a transaction that the server rolled back, until it succeeds or the time is
 * over.
 */
export async function retryRolledBack<Result>(
  timeoutMs: number,
  attempt: () => Promise<Result>,
): Promise<Result> {
  const startedMs = performance.now()
  for (let attempts = 1; ; attempts++) {
    try {
      return await attempt()
    } catch (error) {
      const isLate = performance.now() - startedMs > timeoutMs
      if (!wasRolledBack(error) || isLate || attempts === attemptsMax) {
        throw error
      }
      await sleep(Math.random() * 2 ** attempts)
    }
  }
}

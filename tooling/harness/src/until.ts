import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Polls until the condition holds. An error counts as not yet.
 *
 * @throws Error if it does not hold within the time limit
 */
export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  timeoutMs = 60_000,
): Promise<void> {
  const giveUpAtMs = performance.now() + timeoutMs
  let reason = ''
  while (performance.now() < giveUpAtMs) {
    try {
      if (await holds()) {
        return
      }
    } catch (error) {
      reason = `: ${(error as Error).message}`
    }
    await sleep(20)
  }
  throw new Error(`waited ${timeoutMs} ms for ${what}${reason}`)
}

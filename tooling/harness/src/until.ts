import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Asks again and again until it holds. A question that fails is asked again too.
 *
 * @throws Error when it does not hold within the time limit
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
      if (await holds()) return
    } catch (error) {
      reason = `: ${(error as Error).message}`
    }
    await sleep(20)
  }
  throw new Error(`waited ${timeoutMs} ms for ${what}${reason}`)
}

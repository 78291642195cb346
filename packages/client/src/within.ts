/**
 * Runs something that ends when the time is over or the caller gives up.
 * AbortSignal.timeout and AbortSignal.any would keep each call in memory until then.
 */
export async function within<Result>(
  ms: number,
  caller: AbortSignal | undefined,
  run: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const controller = new AbortController()
  const abort = () => controller.abort()
  const timer = setTimeout(abort, ms)
  caller?.addEventListener('abort', abort)
  try {
    return await run(controller.signal)
  } finally {
    clearTimeout(timer)
    caller?.removeEventListener('abort', abort)
  }
}

/** Rejects once the signal is aborted. */
export function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) =>
    signal.addEventListener('abort', () => reject(signal.reason)),
  )
}

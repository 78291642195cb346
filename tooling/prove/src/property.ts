import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'

export interface Checked {
  readonly runs: number
  /** The smallest counterexample with its seed, or `undefined`. */
  readonly failure: string | undefined
}

/** @param endAtMs the time (of performance.now()) from which no run begins; at least one second is allowed */
export async function checkProperty<Values>(
  property: fc.IAsyncProperty<Values>,
  { seed, runs, endAtMs }: { readonly seed: number; readonly runs: number; readonly endAtMs?: number },
): Promise<Checked> {
  // Lets work that is already scheduled run first, so that a failure shows its own cause.
  await sleep(0)
  const found = await fc.check(property, {
    seed,
    numRuns: runs,
    ...(endAtMs !== undefined && {
      interruptAfterTimeLimit: Math.max(1_000, endAtMs - performance.now()),
      markInterruptAsFailure: false,
    }),
  })
  return {
    runs: found.numRuns,
    failure: found.failed
      ? `seed ${seed}: ${(found.errorInstance as Error | null)?.message}\n${fc.defaultReportMessage(found)}`
      : undefined,
  }
}

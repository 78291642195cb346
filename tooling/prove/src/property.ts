import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'

export interface Checked {
  readonly runs: number
  /** The smallest example that was found, with the seed; `undefined` when none was. */
  readonly failure: string | undefined
}

/** @param endAtMs the moment (of performance.now()) from which no run is begun; one second is always given */
export async function checkProperty<Values>(
  property: fc.IAsyncProperty<Values>,
  { seed, runs, endAtMs }: { readonly seed: number; readonly runs: number; readonly endAtMs?: number },
): Promise<Checked> {
  // So that what was scheduled before has its turn, and a failure shows its own cause.
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

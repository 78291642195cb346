import { hasStrace, temporaryFolder } from '@plant-store/harness'
import { createsPerFsync } from './fsyncs.ts'
import { measure, type Scenario } from './load.ts'
import { describeMachine } from './machine.ts'
import { formatInteger, formatMs, type Measurement, type Run } from './report.ts'
import { bunVersions, ours, type RunningTarget, startTarget, type Target, tryOut } from './targets.ts'

export interface CompareOptions {
  readonly targets: readonly Target[]
  readonly scenarios: readonly Scenario[]
  readonly connections: readonly number[]
  readonly rounds: number
  readonly seconds: number
  readonly warmUpSeconds: number
  /** Plants that a store holds before it is read from. */
  readonly plants: number
  readonly seed: number
}

/**
 * Measures the targets in turns. A scenario begins with fresh stores, so that none suffers from having been fast before.
 *
 * @throws Error at the first answer that is not as it has to be
 */
export async function compare(options: CompareOptions, signal: AbortSignal): Promise<Run> {
  const bun = options.targets.some(target => target.name.startsWith('bun')) ? bunVersions() : undefined
  const machine =
    describeMachine() + (bun === undefined ? '' : `, Bun ${bun.bun} (with SQLite ${bun.sqlite})`)
  console.log(`${machine}; load from wrk, seed ${options.seed}`)

  const measurements: Measurement[] = []
  for (const scenario of options.scenarios) {
    using temporary = temporaryFolder()
    const folder = temporary.path
    await using stack = new AsyncDisposableStack()
    const running: RunningTarget[] = []
    for (const target of options.targets.filter(target => takesPart(target, scenario))) {
      signal.throwIfAborted()
      const population = { seed: options.seed, idBits: 52 } as const
      const plants = scenario === 'creates' ? 0 : options.plants
      const one = stack.use(await startTarget(target, { folder, population, plants }))
      await tryOut(one)
      if (options.warmUpSeconds > 0) {
        await measure(one, { scenario, connections: 64, seconds: options.warmUpSeconds })
      }
      running.push(one)
    }
    for (const connections of options.connections) {
      for (let round = 1; round <= options.rounds; round++) {
        for (const one of running) {
          signal.throwIfAborted()
          const measured = await measure(one, {
            scenario,
            connections,
            seconds: options.seconds,
          })
          measurements.push({ scenario, connections, target: one.target.name, round, ...measured })
          console.log(
            `${scenario}, ${connections} connections, round ${round}: ${one.target.title}: ` +
              `${formatInteger(measured.perSecond)}/s, p50 ${formatMs(measured.p50Ms)} ms, p99 ${formatMs(measured.p99Ms)} ms`,
          )
        }
      }
    }
  }
  const hasOurs = options.targets.includes(ours) && options.scenarios.includes('creates')
  return {
    machine,
    createsPerFsync: hasOurs && hasStrace ? await createsPerFsync(ours, options.seed) : undefined,
    seed: options.seed,
    rounds: options.rounds,
    seconds: options.seconds,
    targets: options.targets.map(({ name, title, promised }) => ({ name, title, promised })),
    measurements,
  }
}

/** Those without a store can only take creates, and how a store syncs makes no difference to who only reads. */
function takesPart({ promised }: Target, scenario: Scenario): boolean {
  if (scenario === 'creates') return true
  return promised === 'durable' || (scenario === 'mixed' && promised === 'not durable')
}

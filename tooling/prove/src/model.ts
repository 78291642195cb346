import assert from 'node:assert/strict'
import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import { preloadOf } from '../breaks/breaks.ts'
import { History, type Kind, type Text, takeEffect, toValue, type Value } from './history.ts'
import { type Operations, recorded } from './operations.ts'
import { type Circumstances, type Finding, figure } from './part.ts'
import { withProgram } from './program.ts'

interface Checked {
  readonly runs: number
  /** The smallest counterexample with its seed, or `undefined`. */
  readonly failure: string | undefined
}

interface ModelFinding extends Checked {
  readonly operations: number
}

interface ModelOptions {
  readonly seed: number
  readonly runs: number
  /** The first id that may be used; the ids above it are free. */
  readonly firstId?: bigint
  readonly endAtMs?: number
}

/** Few, so that operations meet. */
const idsOfRun = 6

type Change = { readonly kind: Kind; readonly n: number; readonly text: Text }
type List = { readonly kind: 'list'; readonly after: number; readonly limit: number; readonly tag?: string }

const change: fc.Arbitrary<Change> = fc.record({
  kind: fc.constantFrom<Kind>('create', 'read', 'replace', 'replaceIf', 'remove', 'removeIf'),
  n: fc.nat(idsOfRun - 1),
  text: fc.record(
    {
      name: fc
        .oneof(fc.string({ unit: 'binary', maxLength: 12 }), fc.constantFrom('', ' ', 'a', 'A'))
        .filter(name => name.isWellFormed() && !name.includes('\0')),
      tag: fc.constantFrom('', 'x', 'X', '\u{1f331}', '%', 'a&b=c'),
    } satisfies Record<keyof Text, unknown>,
    { requiredKeys: ['name'] },
  ),
})
const list: fc.Arbitrary<List> = fc.record(
  {
    kind: fc.constant('list'),
    after: fc.integer({ min: -1, max: idsOfRun }),
    limit: fc.integer({ min: 1, max: idsOfRun + 1 }),
    tag: fc.constantFrom('', 'x', 'X', '%', 'nobody has it'),
  },
  { requiredKeys: ['kind', 'after', 'limit'] },
)

/** Does both below with a running program, by default on a new SQLite file. */
export function runModels(
  { seed, scale, endAtMs, preload }: Circumstances,
  databaseUrl?: string,
): Promise<Finding> {
  const options =
    databaseUrl === undefined ? { preload: preload ?? preloadOf('short-log') } : { databaseUrl, preload }
  return withProgram(options, async program => {
    const [sequences, races] = [Math.ceil(1_000 * scale), Math.ceil(3_000 * scale)]
    const { operations } = program
    const halfTime = (performance.now() + endAtMs) / 2
    const sequential = await runSequentialModel(operations, { seed, runs: sequences, endAtMs: halfTime })
    const racing = await runRacingModel(operations, { seed, runs: races, firstId: 10n ** 12n, endAtMs })
    return {
      tried: `${figure(sequential.runs)} of ${figure(sequences)} sequences against a Map and ${figure(racing.runs)} of ${figure(races)} races; ${figure(sequential.operations + racing.operations)} operations`,
      times: sequential.runs + racing.runs,
      failures: [sequential, racing].flatMap(({ failure }) => failure ?? []),
      lost: 0,
    }
  })
}

/** Runs operations one after another, each compared with a Map. */
export async function runSequentialModel(
  store: Operations,
  { firstId = 0n, ...options }: ModelOptions,
): Promise<ModelFinding> {
  let base = firstId
  let operations = 0
  const steps = fc.array(fc.oneof({ weight: 9, arbitrary: change }, { weight: 1, arbitrary: list }), {
    maxLength: 40,
  })
  const property = fc.asyncProperty(steps, fc.integer({ min: 1, max: idsOfRun }), async (steps, idsUsed) => {
    base += 1_000n
    const plants = new Map<bigint, Value>()
    const versions = new Map<bigint, string | undefined>()
    const history = new History()
    const act = recorded(store, history)
    for (const step of steps) {
      operations++
      if (step.kind === 'list') {
        const { limit, tag } = step
        const after = base + BigInt(step.after)
        const found = await store.list({ after, limit, tag })
        const expected = [...plants]
          .filter(([id, value]) => id > after && (tag === undefined || JSON.parse(value).tag === tag))
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .slice(0, limit)
        // Other runs have larger ids.
        assert.deepEqual(
          found?.filter(([id]) => id < base + BigInt(idsOfRun)),
          expected,
        )
      } else {
        const id = base + BigInt(step.n % idsUsed)
        const before = plants.get(id)
        const expected = history.lastSeen(id)
        const isExpected = expected?.version === versions.get(id)
        const { after, outcome } = takeEffect(
          step.kind,
          before,
          toValue(step.text),
          expected && (isExpected ? before : 'another state'),
        )
        const { version, ...found } = await act(step.kind, id, step.text)
        assert.deepEqual(found, outcome)
        if (after === undefined) plants.delete(id)
        else plants.set(id, after)
        // A create does not return its version, so no client can expect it before a read.
        if (version !== undefined || outcome.is === 'done') versions.set(id, version)
      }
    }
  })
  return { ...(await checkProperty(property, options)), operations }
}

/** Runs several clients at once on the same few ids. For each id, some order must explain what all of them observed. */
export async function runRacingModel(
  store: Operations,
  { firstId = 0n, ...options }: ModelOptions,
): Promise<ModelFinding> {
  let base = firstId
  let operations = 0
  const client = fc.array(fc.oneof({ weight: 9, arbitrary: change }, { weight: 1, arbitrary: list }), {
    minLength: 1,
    maxLength: 8,
  })
  const property = fc.asyncProperty(
    fc.array(client, { minLength: 2, maxLength: 6 }),
    fc.integer({ min: 1, max: idsOfRun }),
    async (clients, idsUsed) => {
      base += 1_000n
      const ids = Array.from({ length: idsOfRun }, (_, index) => base + BigInt(index))
      const history = new History()
      const act = recorded(store, history)
      const listAll = async () => {
        const found = await store.list({ after: base - 1n, limit: idsOfRun })
        return found && new Map(found)
      }
      let written = 0
      await Promise.all(
        clients.map(async steps => {
          for (const step of steps) {
            operations++
            if (step.kind === 'list') await history.readAll(ids, listAll)
            // Each write has a unique name, so that a read identifies its write.
            else
              await act(step.kind, base + BigInt(step.n % idsUsed), {
                ...step.text,
                name: `${step.text.name}#${written++}`,
              })
          }
        }),
      )
      const unexplained = history.settle((await listAll()) ?? new Map())
      assert.equal(unexplained.length, 0, `no order explains what clients saw of ${unexplained.join(', ')}`)
    },
  )
  return { ...(await checkProperty(property, options)), operations }
}

/** @param endAtMs the time (of performance.now()) from which no run begins; at least one second is allowed */
export async function checkProperty<Values>(
  property: fc.IAsyncProperty<Values>,
  { seed, runs, endAtMs }: Pick<ModelOptions, 'seed' | 'runs' | 'endAtMs'>,
): Promise<Checked> {
  // Lets work that is already scheduled run first, so that a failure shows its own cause.
  await setImmediate()
  const found = await fc.check(property, {
    seed,
    numRuns: runs,
    ...(endAtMs !== undefined && {
      interruptAfterTimeLimit: Math.max(1_000, endAtMs - performance.now()),
      markInterruptAsFailure: false,
    }),
  })
  const { numRuns, failed, errorInstance } = found
  const message = () =>
    `seed ${seed}: ${(errorInstance as Error | null)?.message}\n${fc.defaultReportMessage(found)}`
  return { runs: numRuns, failure: failed ? message() : undefined }
}

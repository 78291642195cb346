import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { createHistory, toValue, type Value } from './history.ts'
import { type Operations, recorded, type Text } from './operations.ts'

/** What a model test came to. */
export interface ModelFinding {
  readonly runs: number
  readonly operations: number
  /** How it went wrong, with the smallest example that was found and the seed; `undefined` when it didn't. */
  readonly failure: string | undefined
}

/** Few, so that operations meet. */
const idsOfRun = 6
const text = fc.record(
  {
    name: fc
      .oneof(fc.string({ unit: 'binary', maxLength: 12 }), fc.constantFrom('', ' ', 'a', 'A'))
      .filter(isText),
    tag: fc.constantFrom('', 'x', 'X', '\u{1f331}', '%', 'a&b=c'),
  },
  { requiredKeys: ['name'] },
) as fc.Arbitrary<Text>

function isText(value: string): boolean {
  return value.isWellFormed() && !value.includes('\0')
}

type Step =
  | { readonly kind: 'create' | 'replace'; readonly n: number; readonly text: Text }
  | { readonly kind: 'read' | 'remove'; readonly n: number }
  | { readonly kind: 'list'; readonly after: number; readonly limit: number; readonly tag?: string }

const n = fc.nat(idsOfRun - 1)
const change: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constantFrom('create' as const, 'replace' as const), n, text }),
  fc.record({ kind: fc.constantFrom('read' as const, 'remove' as const), n }),
)
const list: fc.Arbitrary<Step> = fc.record(
  {
    kind: fc.constant('list' as const),
    after: fc.integer({ min: -1, max: idsOfRun }),
    limit: fc.integer({ min: 1, max: idsOfRun + 1 }),
    tag: fc.constantFrom('', 'x', 'X', '%', 'nobody has it'),
  },
  { requiredKeys: ['kind', 'after', 'limit'] },
) as fc.Arbitrary<Step>

interface Model {
  readonly plants: Map<bigint, Text>
  operations: number
}
interface Real {
  readonly store: Operations
  /** The id of the first plant; each run has ids of its own. */
  readonly base: bigint
}

class StepCommand implements fc.AsyncCommand<Model, Real> {
  readonly step: Step
  constructor(step: Step) {
    this.step = step
  }
  check = () => true
  toString = () => JSON.stringify(this.step)

  async run(model: Model, { store, base }: Real): Promise<void> {
    const { step } = this
    model.operations++
    const { plants } = model
    if (step.kind === 'list') {
      const after = base + BigInt(step.after)
      const expected = [...plants]
        .filter(([id, plant]) => id > after && (step.tag === undefined || plant.tag === step.tag))
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .slice(0, step.limit)
        .map(([id, plant]): [bigint, Value] => [id, toValue(plant)])
      const { tag } = step
      const found = await store.list({ after, limit: step.limit, ...(tag !== undefined && { tag }) })
      // Other runs have larger ids.
      equal(found?.filter(([id]) => id < base + BigInt(idsOfRun)).slice(0, expected.length), expected)
      if (step.limit > expected.length)
        equal(found?.filter(([id]) => id < base + BigInt(idsOfRun)).length, expected.length)
      return
    }
    const id = base + BigInt(step.n)
    const has = plants.has(id)
    switch (step.kind) {
      case 'create':
        equal(await store.create(id, step.text), { is: has ? 'taken' : 'done' })
        if (!has) plants.set(id, step.text)
        break
      case 'replace':
        equal(await store.replace(id, step.text), { is: 'done' })
        plants.set(id, step.text)
        break
      case 'read':
        equal(
          await store.read(id),
          has ? { is: 'done', seen: toValue(plants.get(id) as Text) } : { is: 'absent' },
        )
        break
      case 'remove':
        equal(await store.remove(id), { is: has ? 'done' : 'absent' })
        plants.delete(id)
    }
  }
}

function equal(found: unknown, expected: unknown): void {
  const write = (value: unknown) =>
    JSON.stringify(value, (_name, part) => (typeof part === 'bigint' ? `${part}` : part))
  if (write(found) !== write(expected))
    throw new Error(`expected ${write(expected)}, and got ${write(found)}`)
}

export interface ModelOptions {
  readonly seed: number
  readonly runs: number
  /** The first id that may be used; the ids above it are free. */
  readonly firstId?: bigint
  readonly endAtMs?: number
}

/** Operations one after another, each compared with a Map. */
export async function runSequentialModel(
  store: Operations,
  { seed, runs, firstId = 0n, endAtMs }: ModelOptions,
): Promise<ModelFinding> {
  let base = firstId
  let operations = 0
  const property = fc.asyncProperty(
    fc.commands([change.map(step => new StepCommand(step)), list.map(step => new StepCommand(step))], {
      maxCommands: 40,
    }),
    async commands => {
      base += 1_000n
      const model = { plants: new Map<bigint, Text>(), operations: 0 }
      await fc.asyncModelRun(() => ({ model, real: { store, base } }), commands)
      operations += model.operations
    },
  )
  return { ...(await judge(property, seed, runs, endAtMs)), operations }
}

/** Several clients at once on the same few ids; some order must explain, id by id, what all of them saw. */
export async function runRacingModel(
  store: Operations,
  { seed, runs, firstId = 0n, endAtMs }: ModelOptions,
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
      const history = createHistory()
      const seen = recorded(store, history)
      let written = 0
      await Promise.all(
        clients.map(async steps => {
          for (const step of steps) {
            operations++
            if (step.kind === 'list') {
              await history.readAll(ids, async () => {
                const found = await store.list({ after: base - 1n, limit: idsOfRun })
                return found && new Map(found)
              })
              continue
            }
            const id = base + BigInt(step.n % idsUsed)
            // Told apart by who wrote it, or a read could not tell whose it saw.
            if (step.kind === 'create' || step.kind === 'replace')
              await seen[step.kind](id, { ...step.text, name: `${step.text.name}#${written++}` })
            else await seen[step.kind](id)
          }
        }),
      )
      history.settle(new Map(await store.list({ after: base - 1n, limit: idsOfRun })))
      const unexplained = history.unexplained(new Map())
      if (unexplained.length > 0)
        throw new Error(`no order explains what clients saw of ${unexplained.join(', ')}`)
    },
  )
  return { ...(await judge(property, seed, runs, endAtMs)), operations }
}

async function judge<Values>(
  property: fc.IAsyncProperty<Values>,
  seed: number,
  numRuns: number,
  endAtMs: number | undefined,
): Promise<{ runs: number; failure: string | undefined }> {
  // So that what was scheduled before has its turn, and a failure shows its own cause.
  await sleep(0)
  const found = await fc.check(property, {
    seed,
    numRuns,
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

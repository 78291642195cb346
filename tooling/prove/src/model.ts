import assert from 'node:assert/strict'
import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import {
  History,
  type Kind,
  kinds,
  type Text,
  takeEffect,
  toValue,
  type Value,
} from './history.ts'
import { type Operations, recorded } from './operations.ts'
import { type Circumstances, type Finding, figure } from './part.ts'
import { withProgram } from './program.ts'

/** Few, so that operations meet. */
const idsOfRun = 6

const text = fc.record(
  {
    name: fc
      .oneof(
        fc.string({ unit: 'binary', maxLength: 12 }),
        fc.constantFrom('', ' ', 'a', 'A'),
      )
      .filter(name => name.isWellFormed() && !name.includes('\0')),
    tag: fc.constantFrom('', 'x', 'X', '\u{1f331}', '%', 'a&b=c'),
  } satisfies Record<keyof Text, unknown>,
  { requiredKeys: ['name'] },
)
const change = fc.record({
  kind: fc.constantFrom(...kinds),
  n: fc.nat(idsOfRun - 1),
  text,
})
const list = fc.record(
  {
    kind: fc.constant('list'),
    after: fc.integer({ min: -1, max: idsOfRun }),
    limit: fc.integer({ min: 1, max: idsOfRun + 1 }),
    tag: fc.constantFrom('', 'x', 'X', '%', 'nobody has it'),
  },
  { requiredKeys: ['kind', 'after', 'limit'] },
)
const step = fc.oneof({ weight: 9, arbitrary: change }, { weight: 1, arbitrary: list })
const idsUsed = fc.integer({ min: 1, max: idsOfRun })

/** Does both below with a running program, by default on a new SQLite file. */
export function runModels(
  { seed, scale, programs }: Circumstances,
  databaseUrl?: string,
): Promise<Finding> {
  return withProgram(
    { databaseUrl, command: programs.server },
    async ({ operations }) => {
      const sequences = Math.ceil(1_000 * scale)
      const races = Math.ceil(3_000 * scale)
      const failures = [
        await checkProperty(sequentialModel(operations), seed, sequences),
        await checkProperty(racingModel(operations), seed, races),
      ]
      return {
        tried: `${figure(sequences)} sequences against a Map and ${figure(races)} races`,
        times: sequences + races,
        failures: failures.filter(failure => failure !== undefined),
      }
    },
  )
}

/** Runs operations one after another, each compared with a Map. */
function sequentialModel(store: Operations) {
  let base = 0n
  return fc.asyncProperty(
    fc.array(step, { maxLength: 40 }),
    idsUsed,
    async (steps, idsUsed) => {
      base += 1_000n
      const plants = new Map<bigint, Value>()
      const versions = new Map<bigint, string | undefined>()
      const history = new History()
      const act = recorded(store, history)
      const checkList = async (after: bigint, limit: number, tag?: string) => {
        const found = await store.list(after, limit, tag)
        const expected = [...plants]
          .filter(([id]) => id > after)
          .filter(([, value]) => tag === undefined || JSON.parse(value).tag === tag)
          .sort(([a], [b]) => Number(a - b))
          .slice(0, limit)
        // Other runs have larger ids.
        const ofThisRun = found?.filter(([id]) => id < base + BigInt(idsOfRun))
        assert.deepEqual(ofThisRun, expected, `the list after ${after} of tag ${tag}`)
      }
      const checkChange = async (kind: Kind, id: bigint, text: Text) => {
        const before = plants.get(id)
        const expected = history.lastSeen.get(id)
        const isExpected = expected?.version === versions.get(id)
        const { after, outcome } = takeEffect(
          kind,
          before,
          toValue(text),
          expected && (isExpected ? before : 'another state'),
        )
        const { version, ...found } = await act(kind, id, text)
        const observed = `${kind} of plant ${id}: ${JSON.stringify(found)}`
        assert.deepEqual(found, outcome, observed)
        if (after === undefined) {
          plants.delete(id)
        } else {
          plants.set(id, after)
        }
        // A create does not return its version, so no client can expect it before a
        // read.
        if (version !== undefined || outcome.is === 'done') {
          versions.set(id, version)
        }
      }
      for (const step of steps) {
        await (step.kind === 'list'
          ? checkList(base + BigInt(step.after), step.limit, step.tag)
          : checkChange(step.kind, base + BigInt(step.n % idsUsed), step.text))
      }
    },
  )
}

/**
 * Runs several clients at once on the same few ids. For each id, some order must explain
 * what all of them observed.
 */
function racingModel(store: Operations) {
  // Above the ids of sequences.
  let base = 10n ** 12n
  const client = fc.array(step, { minLength: 1, maxLength: 8 })
  return fc.asyncProperty(
    fc.array(client, { minLength: 2, maxLength: 6 }),
    idsUsed,
    async (clients, idsUsed) => {
      base += 1_000n
      const ids = Array.from({ length: idsOfRun }, (_, index) => base + BigInt(index))
      const history = new History()
      const act = recorded(store, history)
      const listAll = async () => {
        const found = await store.list(base - 1n, idsOfRun)
        return found && new Map(found)
      }
      let written = 0
      await Promise.all(
        clients.map(async steps => {
          for (const step of steps) {
            if (step.kind === 'list') {
              await history.readAll(ids, listAll)
            }
            // Each write has a unique name, so that a read identifies its write.
            else {
              const name = `${step.text.name}#${written++}`
              const id = base + BigInt(step.n % idsUsed)
              await act(step.kind, id, { ...step.text, name })
            }
          }
        }),
      )
      const unexplained = history.settle((await listAll()) ?? new Map())
      assert.deepEqual(unexplained, [])
    },
  )
}

/** Resolves to the smallest counterexample, or to `undefined`. */
export async function checkProperty<Values>(
  property: fc.IAsyncProperty<Values>,
  seed: number,
  numRuns: number,
): Promise<string | undefined> {
  // Lets work that is already scheduled run first, so that a failure shows its own cause.
  await setImmediate()
  const found = await fc.check(property, { seed, numRuns })
  const { message } = (found.errorInstance ?? {}) as Error
  return found.failed ? `${message}\n${fc.defaultReportMessage(found)}` : undefined
}

import fc from 'fast-check'
import { expect, onTestFinished, test, vi } from 'vitest'
import { type ConnectionPool, retrying } from '../src/postgres/connection.ts'
import { runTransaction, statements, stepsOf } from '../src/postgres/statements.ts'
import type { Change } from '../src/repositories/repositories.ts'

const inserts = ['insertPlant', 'insertPlantSilently'] as const
const shared = [...inserts, 'savePlant', 'savePlantSilently'] as const
const ofPlants = [...shared, 'removePlant'] as const
const anyChange = fc.oneof(
  { weight: 8, arbitrary: fc.tuple(fc.constantFrom(...ofPlants), fc.bigInt(0n, 5n)) },
  { weight: 1, arbitrary: fc.constantFrom(['removeToken', 'a'], ['removeDelivery', 1n]) },
) as fc.Arbitrary<Change>

const isOneOf = (names: readonly string[], change: Change | undefined) => names.includes(`${change?.[0]}`)
const isOfPlants = (change: Change) => isOneOf(ofPlants, change)

test('steps keep the order of each plant and around other changes, lock rows in one order, and join plants', () => {
  const property = fc.property(fc.array(anyChange, { maxLength: 20 }), group => {
    const steps = stepsOf(group)
    const stepOf = new Map(steps.flatMap((step, number) => step.map(index => [index, number])))
    expect(steps.flat().toSorted((a, b) => a - b)).toEqual([...group.keys()])
    const changes = steps.map(step => step.map(index => group[index] as Change))
    for (const [step, [first, ...others]] of changes.entries()) {
      expect(new Set([first, ...others].map(each => each?.[0])).size).toBe(1)
      if (others.length > 0) expect(isOneOf(shared, first)).toBe(true)
      const ids = (changes[step] as Change[]).map(([, id]) => id as bigint)
      expect(ids).toEqual(ids.toSorted((a, b) => (a < b ? -1 : Number(a > b))))
      // A statement cannot replace a row twice.
      if (!isOneOf(inserts, first)) expect(new Set(ids).size).toBe(ids.length)
    }
    for (const [later, change] of group.entries()) {
      for (const [earlier, before] of group.slice(0, later).entries()) {
        const [a, b] = [stepOf.get(earlier) as number, stepOf.get(later) as number]
        if (!isOfPlants(change) || !isOfPlants(before)) expect(a).toBeLessThan(b)
        else if (change[1] === before[1]) {
          const together = steps[a] as readonly number[]
          expect(a < b || (a === b && together.indexOf(earlier) < together.indexOf(later))).toBe(true)
        }
      }
    }
  })
  fc.assert(property, { numRuns: 1_000 })
  const group: Change[] = [
    ['savePlant', 5n],
    ['insertPlant', 4n],
    ['removePlant', 3n],
    ['insertPlant', 3n],
    ['insertPlant', 2n],
    ['removeToken', 'a'],
    ['insertPlant', 1n],
  ]
  expect(stepsOf(group)).toEqual([[4, 1], [2], [3], [0], [5], [6]])
  const saves: Change[] = [
    ['savePlant', 5n],
    ['savePlant', 1n],
    ['savePlant', 3n],
    ['savePlant', 1n],
    ['removePlant', 4n],
    ['savePlant', 2n],
  ]
  expect(stepsOf(saves)).toEqual([[1], [3, 5, 2], [4], [0]])
})

test('each change has its own rows, and of two inserts of a plant only the first may have inserted it', async () => {
  const sent: unknown[] = []
  const pool = {
    async run(queries: readonly { name: string; text: string; values: unknown[] }[]) {
      sent.push(...queries)
      return queries.map(({ name }) =>
        name === 'removeDeliveries'
          ? { rows: [], rowCount: 7 }
          : { rows: name === 'insertPlant' ? [{ id: 1n }] : [{ id: 4n }, { id: 3n }] },
      )
    },
  } as unknown as ConnectionPool
  const outcome = await runTransaction(pool, [
    ['insertPlant', 2n, 'b', null, 20n],
    ['insertPlant', 1n, 'a', 'tag', 10n],
    ['insertPlant', 1n, 'again', null, 11n],
    ['savePlant', 3n, 'c', null, 30n],
    ['savePlant', 4n, 'd', 'tag', 40n],
    ['removeDeliveries', 'webhook', 2_000],
  ])
  expect(outcome).toEqual([0, 1, 0, 1, 1, 7])
  const columns = [
    [1n, 1n, 2n],
    ['a', 'again', 'b'],
    ['tag', null, null],
    [10n, 11n, 20n],
  ]
  expect(sent).toEqual([
    { name: 'insertPlant', text: statements.change.insertPlant.sql, values: columns },
    {
      name: 'savePlant',
      text: statements.change.savePlant.sql,
      values: [
        [3n, 4n],
        ['c', 'd'],
        [null, 'tag'],
        [30n, 40n],
      ],
    },
    { name: 'removeDeliveries', text: statements.change.removeDeliveries.sql, values: ['webhook', 2_000] },
  ])
})
const coded = (code?: string) => Object.assign(new Error('rolled back'), { code })

test.each(['40001', '40P01'])(
  'what the server rolled back with %s is tried ten times, less and less often',
  async code => {
    const random = vi.spyOn(Math, 'random').mockReturnValue(1)
    onTestFinished(() => random.mockRestore())
    let attempts = 0
    const attemptOf = (failures: number) => async () => {
      if (attempts++ < failures) throw coded(code)
      return 'done'
    }
    const begunMs = performance.now()
    expect(await retrying(60_000, attemptOf(4))).toBe('done')
    const waitedMs = 2 + 4 + 8 + 16
    // A timer may be a millisecond early.
    expect(performance.now() - begunMs).toBeGreaterThan(waitedMs - 4)
    random.mockReturnValue(0)
    // Of a process that has run for long.
    const clock = vi.spyOn(performance, 'now').mockReturnValue(1e9)
    onTestFinished(() => clock.mockRestore())
    attempts = 0
    expect(await retrying(60_000, attemptOf(9))).toBe('done')
    attempts = 0
    await expect(retrying(60_000, attemptOf(100))).rejects.toThrow('rolled back')
    expect(attempts).toBe(10)
  },
)

test('what is too late, or failed otherwise, is not tried again', async () => {
  let attempts = 0
  const fail = async (code?: string) => {
    attempts++
    await new Promise(setImmediate)
    throw coded(code)
  }
  for (const code of ['23505', undefined]) await expect(retrying(60_000, () => fail(code))).rejects.toThrow()
  await expect(retrying(0, () => fail('40001'))).rejects.toThrow()
  expect(attempts).toBe(3)
})

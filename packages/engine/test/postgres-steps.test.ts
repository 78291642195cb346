import {
  type Change,
  type ChangeStatement,
  compileEntities,
  postgresDialect,
  valuesOf,
} from '@plant-store/engine'
import fc from 'fast-check'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { ConnectionPool } from '../src/postgres/connection-pool.ts'
import { retrying } from '../src/postgres/retrying.ts'
import { runGroup, stepsOf } from '../src/postgres/steps.ts'
import { entities, type Note, note } from './notes.ts'

const compiled = compileEntities(entities, postgresDialect)
const change = (name: string, given: object = {}): Change => [
  name,
  ...valuesOf(compiled.changeStatements.get(name) as ChangeStatement, given),
]
const tables = ['notes', 'gardens'] as const
type Table = (typeof tables)[number]

const changeOf = fc.record({
  table: fc.constantFrom(...tables),
  kind: fc.constantFrom('insert', 'insert', 'save', 'remove'),
  id: fc.bigInt(0n, 5n),
})
const anyGroup = fc
  .array(
    fc.oneof(
      { weight: 12, arbitrary: changeOf },
      { weight: 1, arbitrary: fc.constant('clear') },
    ),
    {
      maxLength: 24,
    },
  )
  .map(group =>
    group.map((each, n) =>
      typeof each === 'string'
        ? change('notes.clear')
        : change(`${each.table}.${each.kind}`, note(each.id, `change ${n}`)),
    ),
  )

/** Runs queries as PostgreSQL does, on rows in memory. */
function memory() {
  const rows = { notes: new Map<bigint, Note>(), gardens: new Map<bigint, Note>() }
  const sent: string[][] = []
  const changeOne = (kind: string, table: Map<bigint, Note>, given: Note) => {
    const { id } = given
    if (kind === 'clear') {
      return [[...table.keys()], table.clear()][0] as bigint[]
    }
    const isThere = table.has(id)
    if (kind === 'remove') {
      return table.delete(id) ? [id] : []
    }
    if (kind === 'insert' && isThere) {
      return []
    }
    table.set(id, given)
    return [id]
  }
  const run = (query: { name: string; values: unknown[] }) => {
    const [table = '', kind = ''] = query.name.split('.')
    const { parameters, takesArrays } = compiled.changeStatements.get(
      query.name,
    ) as ChangeStatement
    const columns = takesArrays
      ? (query.values as unknown[][])
      : query.values.map(each => [each])
    const given = (columns[0] ?? [0]).map((_, row) =>
      Object.fromEntries(
        parameters.map((name, column) => [name, columns[column]?.[row]]),
      ),
    ) as unknown as Note[]
    if (kind === 'save' && new Set(given.map(({ id }) => id)).size < given.length) {
      throw new Error('ON CONFLICT DO UPDATE command cannot affect row a second time')
    }
    const changed = given.flatMap(each => changeOne(kind, rows[table as Table], each))
    return { rows: changed.map(id => ({ id })), rowCount: changed.length }
  }
  const pool = {
    async run(queries: { name: string; values: unknown[] }[]) {
      sent.push(queries.map(({ name }) => name))
      return queries.map(run)
    },
  }
  // Of a pool `runGroup` changes this alone.
  return { rows, sent, pool: pool as unknown as ConnectionPool }
}

test('a group in steps has the outcomes and the rows that its changes have one after another', async () => {
  const property = fc.asyncProperty(
    fc.array(anyGroup, { maxLength: 3 }),
    async groups => {
      const [together, apart] = [memory(), memory()]
      for (const group of groups) {
        const wanted: number[] = []
        for (const each of group) {
          wanted.push(...(await runGroup(apart.pool, compiled, [each])))
        }
        expect(await runGroup(together.pool, compiled, group)).toEqual(wanted)
        expect(together.rows).toEqual(apart.rows)
      }
    },
  )
  await fc.assert(property, { numRuns: 300 })
})

test('between changes that are alone all lock rows in one order, and neighbours of one kind share a step', () => {
  const property = fc.property(anyGroup, group => {
    const steps = stepsOf(compiled, group)
    expect(
      steps
        .flatMap(({ changes }) => changes.map(({ index }) => index))
        .sort((a, b) => a - b),
    ).toEqual([...group.keys()])
    const keys: [table: number, id: bigint][] = []
    for (const { name, changes } of steps) {
      if (name === 'notes.clear') {
        keys.length = 0
      } else {
        for (const { change } of changes) {
          keys.push([tables.indexOf(name.split('.')[0] as Table), change[1] as bigint])
        }
      }
      const ordered = keys.toSorted(([a, x], [b, y]) => a - b || Number(x - y))
      expect(keys).toEqual(ordered)
    }
    for (const [n, { name, changes }] of steps.entries()) {
      const before = steps[n - 1]
      if (before?.name !== name || !compiled.changeStatements.get(name)?.takesArrays) {
        continue
      }
      // A statement can replace a row only once.
      expect(before.changes.at(-1)?.value).toEqual(changes[0]?.value)
    }
  })
  fc.assert(property, { numRuns: 300 })
})

const fifty = Array.from({ length: 50 }, (_, n) => (n * 7) % 50)

test.each([
  ['creates of notes', 1, fifty.map(id => change('notes.insert', note(id)))],
  [
    'creates of notes and gardens in turns',
    2,
    fifty.flatMap(id => tables.map(table => change(`${table}.insert`, note(id)))),
  ],
  [
    'a change that is alone between two others',
    3,
    ['insert', 'clear', 'insert'].map(kind => change(`notes.${kind}`, note(1))),
  ],
])('%s are %i steps', (_, count, group) => {
  expect(stepsOf(compiled, group)).toHaveLength(count)
})

test('each change has its own rows, and of two inserts of a row only the first may have inserted it', async () => {
  const { pool, rows, sent } = memory()
  rows.gardens.set(7n, note(7)).set(8n, note(8))
  const group = [note(2, 'b'), note(1, 'a', 'topic'), note(1, 'again'), note(3)].map(
    each => change('notes.insert', each),
  )
  rows.notes.set(2n, note(2))
  expect(await runGroup(pool, compiled, [...group, change('gardens.clear')])).toEqual([
    0, 1, 0, 1, 2,
  ])
  expect(rows.notes.get(1n)).toEqual(note(1, 'a', 'topic'))
  expect(sent).toEqual([['notes.insert', 'notes.insert', 'gardens.clear']])
})

const coded = (code?: string) => Object.assign(new Error('rolled back'), { code })

test.each(['40001', '40P01'])(
  'what the server rolled back with %s is tried ten times, less and less often',
  async code => {
    const random = vi.spyOn(Math, 'random').mockReturnValue(1)
    onTestFinished(() => random.mockRestore())
    let attempts = 0
    const attemptOf = (failures: number) => async () => {
      if (attempts++ < failures) {
        throw coded(code)
      }
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
  for (const code of ['23505', undefined]) {
    await expect(retrying(60_000, () => fail(code))).rejects.toThrow()
  }
  await expect(retrying(0, () => fail('40001'))).rejects.toThrow()
  expect(attempts).toBe(3)
})

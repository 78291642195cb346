import assert from 'node:assert/strict'
import { type Change, compileEntities, postgresDialect } from '@plant-store/engine'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { runGroup, type Step, stepsOf } from '../src/postgres/steps.ts'
import { valuesOf } from '../src/statements/statement.ts'
import { entities, note } from './notes.ts'

const compiled = compileEntities(entities, postgresDialect)
const tables = ['notes', 'gardens'] as const

function changeOf(name: string, values: object = {}): Change {
  const statement = compiled.changeStatements.get(name)
  assert(statement !== undefined, `there is a statement ${name}`)
  return [name, ...valuesOf(statement, values)]
}

const randomChange = fc.record({
  table: fc.constantFrom(...tables),
  kind: fc.constantFrom('insert', 'insert', 'save', 'remove'),
  id: fc.bigInt(0n, 5n),
})
const randomGroup = fc
  .array(
    fc.oneof(
      { weight: 12, arbitrary: randomChange },
      { weight: 1, arbitrary: fc.constant('clear' as const) },
    ),
    { maxLength: 24 },
  )
  .map(group =>
    group.map((drawn, number) => {
      if (drawn === 'clear') {
        return changeOf('notes.clear')
      }
      const { table, kind, id } = drawn
      return changeOf(`${table}.${kind}`, note(id, `change ${number}`))
    }),
  )

describe('the steps of a group', () => {
  test('lock rows in order of table and id, between barriers', () => {
    const property = fc.property(randomGroup, group => {
      const sections = sectionsOf(stepsOf(compiled, group))

      expect(sections).toEqual(sections.map(rows => rows.toSorted(byTableAndId)))
    })
    fc.assert(property, { numRuns: 300 })
  })

  const fiftyIds = Array.from({ length: 50 }, (_, number) => (number * 7) % 50)

  test.each([
    {
      changes: 'creates of notes and gardens in turns',
      count: 2,
      group: fiftyIds.flatMap(id =>
        tables.map(table => changeOf(`${table}.insert`, note(id))),
      ),
    },
    {
      changes: 'a barrier between two creates',
      count: 3,
      group: [
        changeOf('notes.insert', note(1)),
        changeOf('notes.clear'),
        changeOf('notes.insert', note(1)),
      ],
    },
  ])('are $count for $changes', ({ count, group }) => {
    expect(stepsOf(compiled, group)).toHaveLength(count)
  })
})

test('a change affects as many rows as its statement returns for its key', async () => {
  const rows = [{ id: 1n, rows: 7 }, { id: 2n }]
  const pool = { run: async () => [{ rows, rowCount: rows.length }] }
  const group = [3, 2, 1].map(id => changeOf('notes.insert', note(id)))

  // A group needs nothing of a pool but `run`.
  const affectedRows = await runGroup(pool as never, compiled, group)

  expect(affectedRows).toEqual([0, 1, 7])
})

interface LockedRow {
  readonly table: number
  readonly id: bigint
}

/** Returns the rows that the steps lock, in sections that barriers divide. */
function sectionsOf(steps: readonly Step[]): readonly (readonly LockedRow[])[] {
  const sections: LockedRow[][] = [[]]
  for (const { name, changes } of steps) {
    if (name === 'notes.clear') {
      sections.push([])
      continue
    }
    const table = tables.findIndex(known => name.startsWith(`${known}.`))
    for (const {
      change: [, id],
    } of changes) {
      sections.at(-1)?.push({ table, id: BigInt(`${id}`) })
    }
  }
  return sections
}

function byTableAndId(a: LockedRow, b: LockedRow): number {
  return a.table - b.table || Number(a.id - b.id)
}

import assert from 'node:assert/strict'
import {
  type Change,
  type ChangeStatement,
  compileEntities,
  postgresDialect,
} from '@plant-store/engine'
import fc from 'fast-check'
import type pg from 'pg'
import { describe, expect, test } from 'vitest'
import type { ConnectionPool } from '../src/postgres/connection-pool.ts'
import { runGroup, type Step, stepsOf } from '../src/postgres/steps.ts'
import { valuesOf } from '../src/statements/statement.ts'
import { entities, type Note, note } from './notes.ts'

const compiled = compileEntities(entities, postgresDialect)
const tables = ['notes', 'gardens'] as const
type Table = (typeof tables)[number]

function statementOf(name: string): ChangeStatement {
  const statement = compiled.changeStatements.get(name)
  assert(statement !== undefined, `there is a statement ${name}`)
  return statement
}

function changeOf(name: string, values: object = {}): Change {
  return [name, ...valuesOf(statementOf(name), values)]
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

/** A server that runs the statements of notes on rows in memory, as PostgreSQL does. */
class MemoryServer implements Pick<ConnectionPool, 'run'> {
  readonly tables = {
    notes: new Map<bigint, Note>(),
    gardens: new Map<bigint, Note>(),
  }

  async run(queries: readonly pg.QueryConfig[]): Promise<readonly pg.QueryResult[]> {
    return queries.map(query => this.#runQuery(query))
  }

  #runQuery({ name = '', values = [] }: pg.QueryConfig): pg.QueryResult {
    const [table, kind] = name.split('.')
    const notes = notesIn(name, values)
    const ids = new Set(notes.map(({ id }) => id))
    if (kind === 'save' && ids.size < notes.length) {
      throw new Error('ON CONFLICT DO UPDATE command cannot affect row a second time')
    }
    const rows = this.tables[table as Table]
    const changedIds = kind === 'clear' ? clear(rows) : change(rows, notes, `${kind}`)
    return {
      rows: changedIds.map(id => ({ id })),
      rowCount: changedIds.length,
      command: '',
      oid: 0,
      fields: [],
    }
  }
}

/**
 * Returns the notes in the values of a query. Some statements have an array for each
 * column.
 */
function notesIn(name: string, values: readonly unknown[]): readonly Note[] {
  const { parameters, takesArrays } = statementOf(name)
  // A statement that takes arrays has an array for each parameter.
  const columns = takesArrays
    ? (values as readonly unknown[][])
    : values.map(value => [value])
  const ids = columns[0] ?? []
  return ids.map((_, row) => {
    const entries = parameters.map((parameter, column) => [
      parameter,
      columns[column]?.[row],
    ])
    // The statements of notes have the columns of a note, or only its id.
    return Object.fromEntries(entries) as Note
  })
}

function clear(rows: Map<bigint, Note>): readonly bigint[] {
  const ids = [...rows.keys()]
  rows.clear()
  return ids
}

/** Returns the ids of the rows that changed. */
function change(
  rows: Map<bigint, Note>,
  notes: readonly Note[],
  kind: string,
): readonly bigint[] {
  return notes
    .filter(changed => {
      if (kind === 'remove') {
        return rows.delete(changed.id)
      }
      if (kind === 'insert' && rows.has(changed.id)) {
        return false
      }
      rows.set(changed.id, changed)
      return true
    })
    .map(({ id }) => id)
}

describe('a group', () => {
  test('has the outcomes and rows of its changes one after another', async () => {
    const property = fc.asyncProperty(
      fc.array(randomGroup, { maxLength: 3 }),
      async groups => {
        const together = new MemoryServer()
        const apart = new MemoryServer()
        const outcomes: number[] = []
        const expectedOutcomes: number[] = []

        for (const group of groups) {
          outcomes.push(...(await runGroup(together, compiled, group)))
          for (const single of group) {
            expectedOutcomes.push(...(await runGroup(apart, compiled, [single])))
          }
        }

        expect(outcomes).toEqual(expectedOutcomes)
        expect(together.tables).toEqual(apart.tables)
      },
    )
    await fc.assert(property, { numRuns: 300 })
  })
})

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

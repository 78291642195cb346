import assert from 'node:assert/strict'
import type { CompiledEntities } from '../compile-entities.ts'
import type { Change, ChangeStatement } from '../statements/statement.ts'
import type { ConnectionPool } from './connection-pool.ts'

/** One statement of a transaction, for one change or for any number of the same kind. */
export interface Step {
  /** The name of the statement, such as `notes.insert`. */
  readonly name: string
  readonly statement: ChangeStatement
  readonly changes: PlacedChange[]
}

/** A change and its place in the order in which rows are locked. */
interface PlacedChange {
  readonly change: Change
  readonly statement: ChangeStatement
  /** The number of the change in its group. */
  readonly index: number
  /** The number of the section, which begins with a barrier. */
  readonly section: number
  /** The number of the table. -1 for a barrier, so that it is the first. */
  readonly table: number
  /** The value of the column by which changes of the table are ordered. */
  readonly value?: unknown
}

/**
 * Makes the changes of a group in one transaction, and neighbours of one kind in one
 * query. Resolves to the affected rows of each. Rejects like {@link ConnectionPool.run}.
 */
export async function runGroup(
  pool: ConnectionPool,
  compiled: CompiledEntities,
  group: readonly Change[],
) {
  const steps = stepsOf(compiled, group)
  const results = await pool.run(steps.map(queryOf))

  const affectedRows = new Array<number>(group.length)
  for (const [number, { statement, changes }] of steps.entries()) {
    const result = results[number]
    assert(result !== undefined, 'every query has a result')
    const { key } = statement
    const rowsByKey = new Map(result.rows.map(row => [key && row[key], row.rows ?? 1]))
    for (const { index, value } of changes) {
      const rows = key === undefined ? result.rowCount : rowsByKey.get(value)
      affectedRows[index] = rows ?? 0
    }
  }
  return affectedRows
}

/**
 * Divides a group into the steps of a transaction.
 *
 * - Changes are sorted by table and key, so that all processes lock rows in the same
 *   order and cannot deadlock.
 * - Changes of one row stay in order, and so do all before and after a barrier.
 * - Neighbours of one kind share a statement if it takes arrays.
 */
export function stepsOf(
  { changeStatements, tables }: CompiledEntities,
  group: readonly Change[],
): readonly Step[] {
  let section = 0
  const places = group.map((change, index): PlacedChange => {
    const statement = changeStatements.get(change[0])
    assert(statement !== undefined, 'a change names a statement of this process')
    const { order, parameters } = statement
    if (order === 'barrier') {
      section++
      return { change, statement, index, section, table: -1 }
    }
    const table = tables.indexOf(order.of)
    const value = change[1 + parameters.indexOf(order.by)]
    return { change, statement, index, section, table, value }
  })

  const steps: Step[] = []
  for (const placed of places.sort(byPlace)) {
    const { change, statement, value } = placed
    const [name] = change
    const last = steps.at(-1)
    const isSameKind = statement.key !== undefined && last?.name === name
    // A statement can replace a row only once.
    if (isSameKind && last.changes.at(-1)?.value !== value) {
      last.changes.push(placed)
      continue
    }
    steps.push({ name, statement, changes: [placed] })
  }
  return steps
}

function byPlace(a: PlacedChange, b: PlacedChange) {
  const byTable = a.section - b.section || a.table - b.table
  if (byTable !== 0 || a.value === b.value) {
    return byTable
  }
  // The keys of one table have one type.
  return (a.value as bigint) < (b.value as bigint) ? -1 : 1
}

function queryOf({ name, statement, changes }: Step) {
  const { sql: text, parameters, key } = statement
  const values =
    key === undefined
      ? changes.flatMap(({ change }) => change.slice(1))
      : parameters.map((_, column) => changes.map(({ change }) => change[column + 1]))
  return { name, text, values }
}

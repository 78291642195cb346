import assert from 'node:assert/strict'
import type pg from 'pg'
import type { CompiledEntities } from '../entity.ts'
import type { Change, ChangeStatement } from '../statements/statement.ts'
import type { ConnectionPool } from './connection-pool.ts'

type Compiled = Pick<CompiledEntities, 'changeStatements' | 'tables'>

/** One statement of a transaction, for one change or for any number of the same kind. */
export interface Step {
  /** The name of the statement, such as `notes.insert`. */
  readonly name: string
  readonly statement: ChangeStatement
  /**
   * The column that identifies a changed row. Only set if one statement makes several
   * changes: it returns this column for each row that it changed.
   */
  readonly key: string | undefined
  readonly changes: PlacedChange[]
}

/** A change and its place in the order in which rows are locked. */
interface PlacedChange {
  readonly change: Change
  readonly statement: ChangeStatement
  /** The number of the change in its group. */
  readonly index: number
  /** The number of the table. 0 for a barrier. */
  readonly table: number
  /**
   * The value of the column by which changes of the table are ordered. 0 for a barrier.
   */
  readonly value: unknown
}

/**
 * Makes the changes of a group in one transaction, and neighbours of one kind in one
 * query. Resolves to the affected rows of each. Rejects like {@link ConnectionPool.run}.
 */
export async function runGroup(
  pool: Pick<ConnectionPool, 'run'>,
  compiled: Compiled,
  group: readonly Change[],
): Promise<readonly number[]> {
  const steps = stepsOf(compiled, group)
  const results = await pool.run(steps.map(queryOf))

  const affectedRows = new Array<number>(group.length)
  for (const [number, { key, changes }] of steps.entries()) {
    const result = results[number]
    assert(result !== undefined, 'every query has a result')
    const rowsOf = rowCounter(result, key)
    for (const { index, value } of changes) {
      affectedRows[index] = rowsOf(value)
    }
  }
  return affectedRows
}

/** Returns a function that counts the rows that the change of a key has affected. */
function rowCounter(
  { rows, rowCount }: pg.QueryResult,
  key: string | undefined,
): (value: unknown) => number {
  if (key === undefined) {
    return () => rowCount ?? 0
  }
  const rowsByKey = new Map(rows.map(row => [row[key], row.rows ?? 1]))
  return value => rowsByKey.get(value) ?? 0
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
  { changeStatements, tables }: Compiled,
  group: readonly Change[],
): readonly Step[] {
  const steps: Step[] = []
  let unsorted: PlacedChange[] = []
  const addSorted = () => {
    for (const placed of unsorted.sort(byPlace)) {
      addToSteps(steps, placed)
    }
    unsorted = []
  }

  for (const [index, change] of group.entries()) {
    const statement = changeStatements.get(change[0])
    assert(statement !== undefined, 'a change names a statement of this process')
    const { order, parameters } = statement
    if (order === 'barrier') {
      addSorted()
      addToSteps(steps, { change, statement, index, table: 0, value: 0 })
      continue
    }
    const table = tables.indexOf(order.of)
    const value = change[1 + parameters.indexOf(order.by)]
    unsorted.push({ change, statement, index, table, value })
  }
  addSorted()
  return steps
}

/**
 * Adds a change to the last step if both are of one kind, and otherwise a step for it.
 */
function addToSteps(steps: Step[], placed: PlacedChange): void {
  const { change, statement, value } = placed
  const [name] = change
  const last = steps.at(-1)
  const isSameKind = last?.key !== undefined && last.name === name
  // A statement can replace a row only once.
  if (isSameKind && last.changes.at(-1)?.value !== value) {
    last.changes.push(placed)
    return
  }
  steps.push({ name, statement, key: keyOf(statement), changes: [placed] })
}

function byPlace(a: PlacedChange, b: PlacedChange): number {
  if (a.table !== b.table) {
    return a.table - b.table
  }
  if (a.value === b.value) {
    return 0
  }
  // The keys of one table have one type.
  return (a.value as bigint) < (b.value as bigint) ? -1 : 1
}

function keyOf({ order, takesArrays }: ChangeStatement): string | undefined {
  return takesArrays && order !== 'barrier' ? order.by : undefined
}

function queryOf({ name, statement, key, changes }: Step): pg.QueryConfig {
  const { sql: text, parameters } = statement
  const values =
    key === undefined
      ? changes.flatMap(({ change }) => change.slice(1))
      : parameters.map((_, column) => changes.map(({ change }) => change[column + 1]))
  return { name, text, values }
}

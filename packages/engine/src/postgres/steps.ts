import type pg from 'pg'
import type { CompiledEntities } from '../entity.ts'
import type { Change, ChangeStatement } from '../statements/statement.ts'
import type { ConnectionPool } from './connection-pool.ts'

type Compiled = Pick<CompiledEntities, 'changeStatements' | 'tables'>

/**
 * Makes the changes of a group in one transaction and one round trip, and resolves to the affected rows of each. Rejects
 * like {@link ConnectionPool.run}.
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
    const { rows, rowCount } = results[number] as pg.QueryResult
    const changed = new Set(key && rows.map(row => row[key]))
    for (const { index, value } of changes) {
      affectedRows[index] = key ? Number(changed.has(value)) : (rowCount ?? 0)
    }
  }
  return affectedRows
}

/** One statement of a transaction, for one change or for any number of the same kind. */
interface Step {
  readonly name: string
  readonly statement: ChangeStatement
  /** Of a statement for several changes: the column that it returns for each row that it changed. */
  readonly key: string | undefined
  readonly changes: Ordered[]
}

interface Ordered {
  readonly change: Change
  /** In the group. */
  readonly index: number
  /** Where its table is, and the value of the column by which its changes are ordered. */
  readonly place: number
  readonly value: unknown
}

/**
 * Returns the steps of a transaction: changes in order of table and key, so that processes lock rows in the same order and
 * cannot deadlock. Neighbours of one kind share a statement if it takes arrays. Changes of one row stay in order, and so
 * do all before and after a barrier.
 */
export function stepsOf(
  { changeStatements, tables }: Compiled,
  group: readonly Change[],
): readonly Step[] {
  const steps: Step[] = []
  let waiting: Ordered[] = []
  const finish = () => {
    for (const ordered of waiting.sort(byPlace)) {
      const [name] = ordered.change
      const last = steps.at(-1)
      const statement = changeStatements.get(name) as ChangeStatement
      // A statement can replace a row only once.
      if (
        last?.key &&
        last.name === name &&
        last.changes.at(-1)?.value !== ordered.value
      ) {
        last.changes.push(ordered)
      } else {
        steps.push({ name, statement, key: keyOf(statement), changes: [ordered] })
      }
    }
    waiting = []
  }
  for (const [index, change] of group.entries()) {
    // Its names come from the statements of this process.
    const { order, parameters } = changeStatements.get(change[0]) as ChangeStatement
    if (order === 'barrier') {
      finish()
    }
    const place = order === 'barrier' ? 0 : tables.indexOf(order.of)
    const value = order === 'barrier' ? 0 : change[1 + parameters.indexOf(order.by)]
    waiting.push({ change, index, place, value })
    if (order === 'barrier') {
      finish()
    }
  }
  finish()
  return steps
}

function byPlace(a: Ordered, b: Ordered): number {
  if (a.place !== b.place) {
    return a.place - b.place
  }
  const [x, y] = [a.value, b.value] as [bigint, bigint]
  return x < y ? -1 : Number(x > y)
}

const keyOf = ({ order, takesArrays }: ChangeStatement) =>
  takesArrays && order !== 'barrier' ? order.by : undefined

function queryOf({ name, statement, key, changes }: Step): pg.QueryConfig {
  const { sql: text, parameters } = statement
  const [{ change }] = changes as [Ordered]
  const values = key
    ? parameters.map((_, at) => changes.map(({ change }) => change[at + 1]))
    : change.slice(1)
  return { name, text, values }
}

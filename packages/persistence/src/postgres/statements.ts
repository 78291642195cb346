import type { Plant } from '@plant-store/domain'
import { sql } from 'kysely'
import type pg from 'pg'
import { fromPlant, plantChanges } from '../repositories/plants.ts'
import { type Change, createStatements, type Statements } from '../repositories/repositories.ts'
import { compile, type Statement, valuesOf } from '../repositories/statements.ts'
import { postgresDialect } from '../schema/dialect.ts'
import { plantColumns, rowColumns, textBytesInSql, typeOf } from '../schema/tables.ts'
import type { ConnectionPool } from './connection.ts'

const shared = createStatements(postgresDialect)

/** Each parameter is the array of a column. One statement for each row would cost this process seven times the time. */
const ofRows = compile(
  plantChanges(postgresDialect, row => {
    const arrays = rowColumns.map(column => sql`${row[column]}::${sql.raw(typeOf[column])}[]`)
    return sql`select * from unnest(${sql.join(arrays)})`
  }),
  postgresDialect,
)
const returningId = ({ parameters, sql }: Statement) => ({ parameters, sql: `${sql} returning id` })

/** Changes that share a statement. It returns the ids of the rows that it added or replaced. */
const shareable = {
  insertPlant: ofRows.insertPlant,
  insertPlantSilently: returningId(ofRows.insertPlantSilently),
  savePlant: ofRows.savePlant,
  savePlantSilently: returningId(ofRows.savePlantSilently),
}

export const statements: Statements = {
  read: {
    ...shared.read,
    page: withinText(shared.read.page),
    pageOfTag: withinText(shared.read.pageOfTag),
  },
  change: { ...shared.change, ...shareable },
}

/** Selects the rows of a page before which the texts have fewer bytes than one more parameter, without reading a text. */
function withinText({ sql, parameters }: Statement): Statement {
  return {
    parameters,
    sql: `
      select ${plantColumns.map(column => `"${column}"`).join(', ')}
      from (
        select *, sum(${textBytesInSql})
          over (order by id rows between unbounded preceding and 1 preceding) as bytes_before
        from (${sql}) as page
      ) as page
      where coalesce(bytes_before, 0) < $${parameters.length + 1}
      order by id`,
  }
}

/**
 * Makes the changes of a group in one transaction, and resolves to the affected rows of each. Rejects like
 * {@link ConnectionPool.run}.
 */
export async function runTransaction(
  pool: ConnectionPool,
  group: readonly Change[],
): Promise<readonly number[]> {
  const steps = stepsOf(group)
  const results = await pool.run(steps.map(step => queryOf(step.map(index => group[index] as Change))))
  const affectedRows = new Array<number>(group.length)
  for (const [number, step] of steps.entries()) {
    const { rows, rowCount } = results[number] as pg.QueryResult<{ id: unknown }>
    const changed = new Set(rows.map(({ id }) => id))
    for (const index of step) {
      const [name, id] = group[index] as Change
      affectedRows[index] = name in shareable ? Number(changed.delete(id)) : (rowCount ?? 0)
    }
  }
  return affectedRows
}

/** @param changes one, or any number that share a statement */
function queryOf(changes: readonly Change[]): pg.QueryConfig {
  const [[name, ...values] = ['insertPlant' as const]] = changes
  const { sql: text, parameters } = statements.change[name]
  const columns = () => parameters.map((_, column) => changes.map(change => change[column + 1]))
  return { name, text, values: name in shareable ? columns() : values }
}

/**
 * Returns the changes of each statement, as positions in the group. New plants share one. The others follow in order of
 * id, so that processes lock rows in the same order and cannot deadlock. Changes of one plant stay in order. So do all
 * before and after a change of something else, or an insert of the other kind.
 */
export function stepsOf(group: readonly Change[]): readonly (readonly number[])[] {
  const steps: number[][] = []
  let waiting: Waiting[] = []
  let inserting: Change[0] | undefined
  const changed = new Set<bigint>()
  const finish = () => {
    let last: Waiting | undefined
    for (const each of waiting.sort(byTurn)) {
      const { name, id, index } = each
      // A statement replaces a row once.
      const isShared = name === last?.name && name in shareable && (isInsert(name) || id !== last.id)
      if (isShared) steps.at(-1)?.push(index)
      else steps.push([index])
      last = each
    }
    waiting = []
    inserting = undefined
    changed.clear()
  }
  for (const [index, change] of group.entries()) {
    const [name] = change
    const place = idPlaces.get(name)
    if (place === undefined || (isInsert(name) && name !== (inserting ?? name))) finish()
    if (place === undefined) {
      steps.push([index])
      continue
    }
    const id = change[place] as bigint
    const isNew = isInsert(name) && !changed.has(id)
    if (isNew) inserting = name
    else changed.add(id)
    waiting.push({ name, id, index, isNew })
  }
  finish()
  return steps
}

interface Waiting {
  readonly name: Change[0]
  readonly id: bigint
  readonly index: number
  /** An insert of a plant that the group has not changed before. */
  readonly isNew: boolean
}

const isInsert = (name: Change[0]) => name === 'insertPlant' || name === 'insertPlantSilently'

function byTurn(a: Waiting, b: Waiting): number {
  return Number(b.isNew) - Number(a.isNew) || (a.id < b.id ? -1 : Number(a.id > b.id))
}

/** The place of the id in each change of a plant. */
const idPlaces: ReadonlyMap<string, number> = new Map(
  Object.entries(ofRows).map(([name, { parameters }]) => [name, 1 + parameters.indexOf('id')]),
)

const plantOfNobody = { id: 0n, name: '' } as Plant

/** Statements of requests that change no rows: they need the same rights, and a writable server. */
export const noChanges: readonly pg.QueryConfig[] = [
  queryOf([]),
  noChange('savePlantIf', { ...fromPlant(plantOfNobody), expected: null }),
  noChange('removePlantIf', { id: 0n, expected: null }),
  noChange('markTokenUsed', { hash: '', usedAt: 0n }),
]

function noChange(name: Change[0], given: object): pg.QueryConfig {
  return queryOf([[name, ...valuesOf(statements.change[name], given)]])
}

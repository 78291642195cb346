import type { Plant } from '@plant-store/domain'
import { type RawBuilder, sql } from 'kysely'
import type pg from 'pg'
import { fromPlant } from '../repositories/plants.ts'
import { type Change, createStatements, type Statements } from '../repositories/repositories.ts'
import { type Statement, valuesOf } from '../repositories/statements.ts'
import { announceOnPostgres, postgresDialect } from '../schema/dialect.ts'
import { plantColumns, rowColumns, textBytesInSql, typeOf } from '../schema/tables.ts'
import type { ConnectionPool } from './connection.ts'

const shared = createStatements(postgresDialect)

const quoted = (columns: readonly string[]) => columns.map(column => `"${column}"`).join(', ')
const arrays = rowColumns.map((column, index) => `$${index + 1}::${typeOf[column]}[]`)
const insertRows = sql.raw(`
  insert into plants (${quoted(rowColumns)}) select * from unnest(${arrays.join(', ')}) on conflict do nothing`)

export const statements: Statements = {
  read: {
    ...shared.read,
    page: withinText(shared.read.page),
    pageOfTag: withinText(shared.read.pageOfTag),
  },
  change: {
    ...shared.change,
    insertPlant: ofRows('insertPlant', announceOnPostgres(insertRows)),
    insertPlantSilently: ofRows('insertPlantSilently', sql`${insertRows} returning id`),
  },
}

type Insert = 'insertPlant' | 'insertPlantSilently'

const isInsert = (name: Change[0]): name is Insert => name.startsWith('insertPlant')

/**
 * Inserts any number of rows, and returns the ids of those inserted. Each parameter is the array of a column. One
 * statement for each row would cost this process seven times the processor time.
 */
function ofRows(name: Insert, inserting: RawBuilder<unknown>): Statement {
  return { ...shared.change[name], sql: inserting.compile(postgresDialect.compiler).sql }
}

/** Selects the rows of a page before which the texts have fewer bytes than one more parameter, without reading a text. */
function withinText({ sql, parameters }: Statement): Statement {
  return {
    parameters,
    sql: `
      select ${quoted(plantColumns)}
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
 * Makes the changes of a group in one transaction and one round trip, and resolves to the affected rows of each. Rejects
 * like {@link ConnectionPool.run}.
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
    const inserted = new Set(rows.map(({ id }) => id))
    for (const index of step) {
      const [name, id] = group[index] as Change
      affectedRows[index] = isInsert(name) ? Number(inserted.delete(id)) : (rowCount ?? 0)
    }
  }
  return affectedRows
}

/** @param changes one, or any number of inserts of one kind */
function queryOf(changes: readonly Change[]): pg.QueryConfig {
  const [[name, ...values] = ['insertPlant' as const]] = changes
  const { sql: text, parameters } = statements.change[name]
  const columns = () => parameters.map((_, column) => changes.map(insert => insert[column + 1]))
  return { name, text, values: isInsert(name) ? columns() : values }
}

/**
 * Returns the changes of each statement, as positions in the group. New plants share one. The others follow in order of
 * id, so that processes lock rows in the same order and cannot deadlock. Changes of one plant stay in order. So do all
 * before and after a change of something else, or an insert of the other kind.
 */
export function stepsOf(group: readonly Change[]): readonly (readonly number[])[] {
  const steps: number[][] = []
  let inserts: Positioned[] = []
  let insert: Insert = 'insertPlant'
  let others: Positioned[] = []
  const changed = new Set<bigint>()
  const finish = () => {
    if (inserts.length > 0) steps.push(inserts.sort(byId).map(({ index }) => index))
    steps.push(...others.sort(byId).map(({ index }) => [index]))
    inserts = []
    others = []
    changed.clear()
  }
  for (const [index, change] of group.entries()) {
    const [name] = change
    const place = idPlaces.get(name)
    if (place === undefined) {
      finish()
      steps.push([index])
      continue
    }
    if (isInsert(name) && name !== insert) {
      finish()
      insert = name
    }
    const id = change[place] as bigint
    if (isInsert(name) && !changed.has(id)) {
      inserts.push({ id, index })
    } else {
      changed.add(id)
      others.push({ id, index })
    }
  }
  finish()
  return steps
}

interface Positioned {
  readonly id: bigint
  readonly index: number
}

function byId(a: Positioned, b: Positioned): number {
  return a.id < b.id ? -1 : Number(a.id > b.id)
}

/** The place of the id in each change of a plant. */
const idPlaces: ReadonlyMap<Change[0], number> = new Map(
  (
    [
      ...(['insertPlant', 'insertPlantSilently', 'savePlant', 'savePlantSilently'] as const),
      ...(['savePlantIf', 'removePlant', 'removePlantIf'] as const),
    ] as const
  ).map(name => [name, 1 + statements.change[name].parameters.indexOf('id')]),
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

import {
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type RawBuilder,
  sql,
} from 'kysely'
import { databaseTime } from '../announcing.ts'
import {
  compiled,
  createStatements,
  type ExpectedRow,
  ignoreRow,
  isEarlierUse,
  replacePlant,
  type Statements,
  saveExpected,
} from '../shared-statements.ts'
import { plantColumns, quoted, rowColumns, type Tables, textBytesInSql, typeOf } from '../tables.ts'
import type { WebhookDialect } from '../webhook-statements.ts'

const db = new Kysely<Tables>({
  dialect: {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: db => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  },
})

type ColumnType = 'bigint' | 'text'
const rowTypes = rowColumns.map(column => typeOf[column])
const plantRows = rowsOf(...rowTypes)
const insertPlants = db.insertInto('plants').columns(rowColumns).expression(plantRows)
const expectedRows = unnest<ExpectedRow>([...rowTypes, 'bigint']).as<'given'>(
  sql`given(${sql.join([...rowColumns, 'expected'].map(column => sql.ref(column)))})`,
)
const expectedVersions = unnest<{ id: bigint; expected: bigint }>(['bigint', 'bigint'])
const insertTokens = db
  .insertInto('access_tokens')
  .columns(['name', 'hash', 'scopes', 'created_at', 'expires_at'])
  .expression(rowsOf('text', 'text', 'text', 'bigint', 'bigint'))
const uses = unnest<{ hash: string; used_at: bigint }>(['text', 'bigint'])

const webhookDialect: WebhookDialect = {
  now: databaseTime.bigint,
  // The trigger exists from the start.
  announce: sql`select`,
  given: columns => {
    const names = Object.keys(columns).map(column => sql.ref(column))
    return sql`${unnest(Object.values(columns))} as given(${sql.join(names)})`
  },
  affected: key => sql`returning ${sql.ref(key)}`,
}

const shared = createStatements(db, webhookDialect)

const { pageOfTag } = compiled({
  pageOfTag: db
    .selectFrom('plants')
    .select(plantColumns)
    .where(sql<boolean>`${tagStart(sql.ref('tag'))} = ${tagStart(sql`$1::text`)}`)
    .where(sql<boolean>`tag = $1`)
    .where(sql<boolean>`id >= $2`)
    .orderBy('id')
    .limit(sql<number>`$3`),
})

/** Selects the rows of a page before which the texts have fewer bytes than the parameter, without reading a text. */
const withinText = (page: string, parameter: string) => `
  select ${quoted(plantColumns).join(', ')}
  from (
    select *, sum(${textBytesInSql})
      over (order by id rows between unbounded preceding and 1 preceding) as bytes_before
    from (${page}) as page
  ) as page
  where coalesce(bytes_before, 0) < ${parameter}
  order by id`

export const statements: Statements = {
  read: {
    ...shared.read,
    page: withinText(shared.read.page, '$3'),
    /** A long tag does not fit into an index, which holds only its start. */
    pageOfTag: withinText(pageOfTag, '$4'),
  },
  /**
   * One statement for any number of rows with distinct keys. Each parameter is the array of a column, and the result is
   * the keys of the changed rows.
   */
  change: {
    ...shared.change,
    ...compiled({
      insertPlant: insertPlants.onConflict(ignoreRow).returning('id'),
      savePlant: insertPlants.onConflict(replacePlant).returning('id'),
      savePlantIf: saveExpected(db, expectedRows).returning('plants.id'),
      removePlant: db.deleteFrom('plants').where(isAnyOf('id', 'bigint')).returning('id'),
      removePlantIf: db
        .deleteFrom('plants')
        .using(expectedVersions.as<'given'>(sql`given(id, expected)`))
        .whereRef('plants.id', '=', 'given.id')
        .whereRef('plants.version', '=', 'given.expected')
        .returning('plants.id'),
      insertToken: insertTokens.onConflict(ignoreRow).returning('name'),
      markTokenUsed: db
        .updateTable('access_tokens')
        .from(uses.as<'used'>(sql`used(hash, used_at)`))
        .set(({ ref }) => ({ last_used_at: ref('used.used_at') }))
        .whereRef('access_tokens.hash', '=', 'used.hash')
        .where(isEarlierUse)
        .returning('access_tokens.hash'),
      removeToken: db.deleteFrom('access_tokens').where(isAnyOf('name', 'text')).returning('name'),
    }),
  },
}

/** The start of a tag, short enough for PostgreSQL's index entries of at most 2,704 bytes. */
export function tagStart(tag: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`substr(${tag}, 1, 200)`
}

function isAnyOf(column: string, type: ColumnType): RawBuilder<boolean> {
  return sql<boolean>`${sql.ref(column)} = any(${array(type)})`
}

function rowsOf(...types: ColumnType[]): RawBuilder<unknown> {
  return sql`select * from ${unnest(types)}`
}

function unnest<Row>(types: readonly ColumnType[]): RawBuilder<Row> {
  return sql`unnest(${sql.join(types.map(array))})`
}

function array(type: ColumnType): RawBuilder<unknown> {
  return sql`${[]}::${sql.raw(type)}[]`
}

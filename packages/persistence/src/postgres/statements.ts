import {
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type RawBuilder,
  sql,
} from 'kysely'
import {
  createStatements,
  isEarlierUse,
  replacePlant,
  replaceStaged,
  type Statements,
  sqlOf,
} from '../shared-statements.ts'
import { type PlantRow, plantColumns, type Tables } from '../tables.ts'

const db = new Kysely<Tables>({
  dialect: {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: db => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  },
})

const typeOf = { id: 'bigint', name: 'text', tag: 'text' } as const satisfies Record<
  keyof PlantRow,
  ColumnType
>
const plantTypes = plantColumns.map(column => typeOf[column])

const shared = createStatements(db)

/** Of a page, the rows before which the texts have fewer bytes than the last parameter says. To tell them, no text is read. */
const withinText = (page: string, parameter: string) => `
  select ${plantColumns.join(', ')}
  from (
    select *, sum(octet_length(name) + coalesce(octet_length(tag), 0))
      over (order by id rows between unbounded preceding and 1 preceding) as bytes_before
    from (${page}) as page
  ) as page
  where coalesce(bytes_before, 0) < ${parameter}
  order by id`

const read: Statements['read'] = {
  ...shared.read,
  /** from id, limit, bytes of text */
  page: withinText(shared.read.page, '$3'),
  /** tag, from id, limit, bytes of text. A tag is of any length and an index entry is not, so the index has how the tag starts. */
  pageOfTag: withinText(
    sqlOf(
      db
        .selectFrom('plants')
        .select(plantColumns)
        .where(sql<boolean>`${tagStart(sql.ref('tag'))} = ${tagStart(sql`$1::text`)}`)
        .where(sql<boolean>`tag = $1`)
        .where(sql<boolean>`id >= $2`)
        .orderBy('id')
        .limit(sql<number>`$3`),
    ),
    '$4',
  ),
}

/**
 * Each kind of change as one statement for any number of rows, which must not name a row twice: a parameter is the
 * array of one column, and the result is the keys of the rows that it changed. Only what PostgreSQL, CockroachDB and
 * YugabyteDB all know.
 */
const change: Statements['change'] = {
  /** the columns of plants */
  insertPlant: sqlOf(
    db
      .insertInto('plants')
      .columns(plantColumns)
      .expression(rowsOf(...plantTypes))
      .onConflict(conflict => conflict.doNothing())
      .returning('id'),
  ),
  /** the columns of plants */
  savePlant: sqlOf(
    db
      .insertInto('plants')
      .columns(plantColumns)
      .expression(rowsOf(...plantTypes))
      .onConflict(replacePlant)
      .returning('id'),
  ),
  /** ids */
  removePlant: sqlOf(
    db
      .deleteFrom('plants')
      .where(sql<boolean>`id = any(${array('bigint')})`)
      .returning('id'),
  ),
  /** names, hashes, scopes, created_ats, expires_ats */
  insertToken: sqlOf(
    db
      .insertInto('access_tokens')
      .columns(['name', 'hash', 'scopes', 'created_at', 'expires_at'])
      .expression(rowsOf('text', 'text', 'text', 'bigint', 'bigint'))
      .onConflict(conflict => conflict.doNothing())
      .returning('name'),
  ),
  /** hashes, last_used_ats */
  markTokenUsed: sqlOf(
    db
      .updateTable('access_tokens')
      .from(
        sql<{ hash: string; used_at: bigint }>`unnest(${array('text')}, ${array('bigint')})`.as<'used'>(
          sql`used(hash, used_at)`,
        ),
      )
      .set(({ ref }) => ({ last_used_at: ref('used.used_at') }))
      .whereRef('access_tokens.hash', '=', 'used.hash')
      .where(isEarlierUse)
      .returning('access_tokens.hash'),
  ),
  /** names */
  removeToken: sqlOf(
    db
      .deleteFrom('access_tokens')
      .where(sql<boolean>`name = any(${array('text')})`)
      .returning('name'),
  ),
}

const keep: Statements['keep'] = {
  ...shared.keep,
  /** the columns of plants */
  stage: sqlOf(
    db
      .insertInto('staged')
      .columns(plantColumns)
      .expression(rowsOf(...plantTypes))
      .onConflict(replaceStaged),
  ),
}

export const statements: Statements = { read, keep, change }

/** As much of a tag as always fits into an entry of an index of PostgreSQL, which has at most 2,704 bytes. */
export function tagStart(tag: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`substr(${tag}, 1, 200)`
}

type ColumnType = 'bigint' | 'text'

function rowsOf(...types: ColumnType[]): RawBuilder<unknown> {
  return sql`select * from unnest(${sql.join(types.map(array))})`
}

function array(type: ColumnType): RawBuilder<unknown> {
  return sql`${[]}::${sql.raw(type)}[]`
}

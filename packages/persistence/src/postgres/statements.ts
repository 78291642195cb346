import {
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type RawBuilder,
  sql,
} from 'kysely'
import { tagStart } from '../migrations.ts'
import { type Statements, sqlOf, writeStatements } from '../statements.ts'
import type { Tables } from '../tables.ts'

const db = new Kysely<Tables>({
  dialect: {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: db => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  },
})

const read: Statements['read'] = {
  ...writeStatements(db).read,
  /** tag, from id, limit. A tag is of any length and an index entry is not, so the index has how the tag starts. */
  pageOfTag: sqlOf(
    db
      .selectFrom('plants')
      .select(['id', 'name', 'tag'])
      .where(sql<boolean>`${tagStart(sql.ref('tag'))} = ${tagStart(sql`$1::text`)}`)
      .where(sql<boolean>`tag = $1`)
      .where(sql<boolean>`id >= $2`)
      .orderBy('id')
      .limit(sql<number>`$3`),
  ),
}

/**
 * Each kind of change as one statement for any number of rows, which must not name a row twice: a parameter is the
 * array of one column, and the result is the keys of the rows that it changed. Only what PostgreSQL, CockroachDB and
 * YugabyteDB all know.
 */
const write: Statements['write'] = {
  /** ids, names, tags */
  insertPlant: sqlOf(
    db
      .insertInto('plants')
      .columns(['id', 'name', 'tag'])
      .expression(rowsOf('bigint', 'text', 'text'))
      .onConflict(conflict => conflict.doNothing())
      .returning('id'),
  ),
  /** ids, names, tags */
  savePlant: sqlOf(
    db
      .insertInto('plants')
      .columns(['id', 'name', 'tag'])
      .expression(rowsOf('bigint', 'text', 'text'))
      .onConflict(conflict =>
        conflict
          .column('id')
          .doUpdateSet(({ ref }) => ({ name: ref('excluded.name'), tag: ref('excluded.tag') })),
      )
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
  /** names */
  removeToken: sqlOf(
    db
      .deleteFrom('access_tokens')
      .where(sql<boolean>`name = any(${array('text')})`)
      .returning('name'),
  ),
}

export const statements: Statements = { read, write }

type ColumnType = 'bigint' | 'text'

function rowsOf(...types: ColumnType[]): RawBuilder<unknown> {
  return sql`select * from unnest(${sql.join(types.map(array))})`
}

function array(type: ColumnType): RawBuilder<unknown> {
  return sql`${[]}::${sql.raw(type)}[]`
}

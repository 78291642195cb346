import assert from 'node:assert/strict'
import {
  type AliasableExpression,
  type Expression,
  Kysely,
  PostgresDialect,
  type RawBuilder,
  SqliteDialect,
  sql,
} from 'kysely'
import {
  type Build,
  type ChangeStatement,
  type ColumnsOf,
  type ColumnType,
  compile,
  type Order,
  type PageBounds,
  type Parameter,
  type Query,
  type ReadStatement,
} from './statement.ts'

/** A database, as migrations and the statements that both databases share see it. */
export interface Dialect {
  readonly name: 'sqlite' | 'postgres'
  /** The type of a column. */
  readonly int64: RawBuilder<unknown>
  /** Makes SQLite refuse values of another type than the column's. */
  readonly tableOptions: RawBuilder<unknown>
  /**
   * Milliseconds since 1970 by the database's clock, which all processes on a store
   * share.
   */
  readonly now: RawBuilder<bigint>
  /** Returns Kysely's builder for statements on these tables. */
  tables<Tables>(): Kysely<Tables>
  read<Values, Row>(build: Build<Values, Row>): ReadStatement<Values, Row>
  change<Values>(
    order: Order<keyof Values & string>,
    build: Build<Values>,
  ): ChangeStatement<Values>
  /**
   * Defines a page in order of `id`, which ends with the row at which its texts reach
   * `textBytesMax`. No text of a later row is read.
   *
   * @param columns the columns of the page
   * @param build selects each of its texts through `text`
   */
  page<Values extends PageBounds, Row>(
    columns: ColumnsOf<NoInfer<Row>>,
    build: (p: Parameter<Values>, text: PageText) => Query<Row>,
  ): ReadStatement<Values, Row>
}

/** Returns what a page selects for a text. */
export type PageText = <Text extends string | null>(
  column: Expression<Text>,
) => AliasableExpression<Text>

// biome-ignore lint/suspicious/noExplicitAny: the caller has the types of the tables
type Compiler = Kysely<any>

/** Returns what both databases do alike. */
function statementsOf(compiler: Compiler): Pick<Dialect, 'tables' | 'read' | 'change'> {
  return {
    tables: () => compiler,
    read: build => ({ kind: 'read', ...compile(build, compiler) }),
    change: (order, build) => ({ kind: 'change', order, ...compile(build, compiler) }),
  }
}

const sqlite: Compiler = new Kysely({
  dialect: new SqliteDialect({ database: () => Promise.reject() }),
})

const ofSqlite: Dialect = {
  name: 'sqlite',
  int64: sql`integer`,
  tableOptions: sql`strict`,
  now: sql<bigint>`cast(unixepoch('subsec') * 1000 as integer)`,
  ...statementsOf(sqlite),
  page(columns, build) {
    const guarded = ofSqlite.read<PageBounds, unknown>(p =>
      build(
        p as Parameter<never>,
        column => sql`case when octet_length(${column}) > ${p('textBytesMax')}
          then 0 else ${column} end`,
      ),
    )
    return {
      ...ofSqlite.read(p => build(p, plainText)),
      bound: { texts: textsOf(columns), guarded },
    }
  },
}

/** Two statements of one change have no names for their values later. */
const takeTheSame = 'both take the same values'

export const sqliteDialect = {
  ...ofSqlite,
  /**
   * Defines a change that another statement precedes, because a statement of SQLite
   * changes only one table. See `preceding` of {@link ChangeStatement}.
   */
  changePrecededBy<Values>(
    preceding: { readonly onlyIf: Query<unknown>; readonly build: Build<Values> },
    order: Order<keyof Values & string>,
    build: Build<Values>,
  ): ChangeStatement<Values> {
    const statement = ofSqlite.change(order, build)
    const first = compile(preceding.build, sqlite)
    assert.deepEqual(first.parameters, statement.parameters, takeTheSame)
    const onlyIf = compile(() => preceding.onlyIf, sqlite)
    return { ...statement, preceding: { onlyIf: onlyIf.sql, sql: first.sql } }
  },
  /**
   * Defines a change, and another one of the same values if the first changes nothing.
   */
  changeOr<Values>(
    first: ChangeStatement<Values>,
    otherwise: ChangeStatement<Values>,
  ): ChangeStatement<Values> {
    assert.deepEqual(first.parameters, otherwise.parameters, takeTheSame)
    return { ...first, otherwise }
  },
}

const plainText: PageText = column => sql`${column}`

function textsOf(columns: Readonly<Record<string, ColumnType>>): readonly string[] {
  return Object.keys(columns).filter(name => columns[name] === 'text')
}

const postgres: Compiler = new Kysely({
  dialect: new PostgresDialect({ pool: () => Promise.reject() }),
})

const ofPostgres: Dialect = {
  name: 'postgres',
  int64: sql`bigint`,
  tableOptions: sql``,
  now: sql<bigint>`cast(extract(epoch from statement_timestamp()) * 1000 as bigint)`,
  ...statementsOf(postgres),
  page(columns, build) {
    const names = sql.join(Object.keys(columns).map(name => sql.ref(name)))
    const sizes = textsOf(columns).map(
      name => sql`coalesce(octet_length(${sql.ref(name)}), 0)`,
    )
    return ofPostgres.read(
      p => sql`
        select ${names} from (
          select *, sum(${sql.join(sizes, sql` + `)})
            over (order by id rows between unbounded preceding and 1 preceding)
            as bytes_before
          from (${build(p, plainText)}) as page
        ) as page
        where coalesce(bytes_before, 0) < ${p('textBytesMax')} order by id`,
    )
  },
}

export const postgresDialect = {
  ...ofPostgres,
  /**
   * Defines a statement for any number of changes: each parameter is an array. The
   * statement returns `order.by` of the rows that it changed, and may return `rows`. One
   * statement for each change would cost this process seven times the processor time.
   */
  changeMany: <Values>(
    order: Exclude<Order<keyof Values & string>, 'barrier'>,
    build: Build<Values>,
  ): ChangeStatement<Values> => ({ ...ofPostgres.change(order, build), key: order.by }),
}

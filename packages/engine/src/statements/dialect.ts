import { Kysely, PostgresDialect, type RawBuilder, SqliteDialect, sql } from 'kysely'
import {
  type ChangeStatement,
  type ColumnType,
  type ColumnTypes,
  compile,
  type Order,
  type PageColumns,
  type PageGiven,
  type Parameters,
  type Query,
  type ReadStatement,
} from './statement.ts'

/** A database, as statements and migrations see it. */
export interface Dialect {
  readonly name: 'sqlite' | 'postgres'
  readonly int64: 'integer' | 'bigint'
  /** Makes SQLite refuse values of another type than the column's. */
  readonly tableOptions: RawBuilder<unknown>
  /** Milliseconds since 1970 by the database's clock, which all processes on a store share. */
  readonly now: RawBuilder<bigint>
  /** The names of all tables beside which a store's tables would be. */
  readonly tableNames: RawBuilder<{ name: string }>
  /** Returns Kysely's builder for statements on these tables. */
  tables<Tables>(): Kysely<Tables>
  read<Given, Row>(build: (p: Parameters<Given>) => Query<Row>): ReadStatement<Given, Row>
  /**
   * Defines a page, which ends with the row at which its texts reach a size.
   *
   *     dialect.page({ id: 'bigint', name: 'text' }, (p: Parameters<PageGiven & { from: bigint }>, columns: PageColumns<Row>) =>
   *       db.selectFrom('plants').select(columns).where('id', '>=', p.from).orderBy('id').limit(p.limit))
   *
   * @param types the columns of a row, of which each text counts. The first is the key by which `build` orders the page
   * @param build selects its columns from those that it takes
   */
  page<Given extends PageGiven, Row>(
    types: ColumnTypes<Row>,
    build: (p: Parameters<Given>, columns: PageColumns<Row>) => Query<Row>,
  ): ReadStatement<Given, Row>
  change<Given>(
    order: Order<keyof Given & string>,
    build: (p: Parameters<Given>) => Query<unknown>,
  ): ChangeStatement<Given>
  /**
   * Defines the insert of a row, if its key is free. On PostgreSQL any number of them are one statement: one statement
   * for each would cost this process seven times the processor time.
   *
   *     dialect.insert(db, 'plants', 'id', { id: 'bigint', name: 'text' })
   *     // insert into "plants" ("id", "name") values (?, ?) on conflict do nothing
   *     // on PostgreSQL: … select * from unnest($1::bigint[], $2::text[]) on conflict do nothing returning "id"
   *
   * @param db the builder that `tables` returns, for the types of the table's columns
   * @param types the row's columns in the order of writing, and the type of each
   * @param also what it does besides, in the same transaction
   */
  insert<Tables, Table extends keyof Tables & string>(
    db: Kysely<Tables>,
    table: Table,
    key: keyof Tables[Table] & string,
    types: ColumnTypes<Tables[Table]>,
    also?: AlsoInserts<Tables[Table]>,
  ): ChangeStatement<Tables[Table]>
  /** Like `insert`. Replaces the row that has the key. */
  readonly save: Dialect['insert']
}

/** What an insert does besides, such as adding rows of another table. */
export interface AlsoInserts<Row> {
  /** A statement that runs before the insert and has its parameters, if the query `onlyIf` returns a row. */
  readonly sqlite: {
    readonly onlyIf: Query<unknown>
    readonly statement: (p: Parameters<Row>) => Query<unknown>
  }
  /** Returns a statement that contains the insert, and returns the key of each row that it changed. */
  readonly postgres: (insert: Query<unknown>) => Query<unknown>
}

export const columnList = (names: readonly string[]) =>
  sql.join(names.map(name => sql.ref(name)))

// biome-ignore lint/suspicious/noExplicitAny: it compiles statements on any tables, whose types are the caller's
type Compiler = Kysely<any>

interface Differences
  extends Omit<Dialect, 'tables' | 'read' | 'change' | 'insert' | 'save'> {
  /** Whether one statement inserts several rows, with an array for each column. */
  readonly takesArrays: boolean
  /** Returns the rows to insert, given the parameter and the type of each column. */
  rows(
    values: readonly (readonly [RawBuilder<unknown>, ColumnType])[],
  ): RawBuilder<unknown>
}

function createDialect(
  compiler: Compiler,
  { rows, takesArrays, ...others }: Differences,
): Dialect {
  const inserting =
    (
      onConflict: (key: string, columns: readonly string[]) => RawBuilder<unknown>,
    ): Dialect['insert'] =>
    (_, table, key, types, also) => {
      const columns = Object.keys(types) as (keyof typeof types)[]
      const returning =
        also?.postgres ?? (insert => sql`${insert} returning ${sql.ref(key)}`)
      const compiled = compile<typeof types>(p => {
        const values = columns.map(name => [p[name], types[name]] as const)
        const insert = sql`
          insert into ${sql.table(table)} (${columnList(columns)}) ${rows(values)}
          on conflict ${onConflict(key, columns)}`
        return takesArrays ? returning(insert) : insert
      }, compiler)
      const others =
        takesArrays || also === undefined ? {} : compileAlso(also.sqlite, compiled)
      return {
        kind: 'change',
        order: { of: table, by: key },
        takesArrays,
        ...compiled,
        ...others,
      }
    }
  return {
    ...others,
    tables: () => compiler,
    read: build => ({ kind: 'read', ...compile(build, compiler) }),
    change: (order, build) => ({
      kind: 'change',
      order,
      takesArrays: false,
      ...compile(build, compiler),
    }),
    insert: inserting(() => sql`do nothing`),
    save: inserting((key, columns) => {
      const others = columns.filter(name => name !== key)
      const assigned = others.map(
        name => sql`${sql.ref(name)} = ${sql.ref(`excluded.${name}`)}`,
      )
      return sql`(${sql.ref(key)}) do update set ${sql.join(assigned)}`
    }),
  }
}

const sqlite: Compiler = new Kysely({
  dialect: new SqliteDialect({ database: () => Promise.reject() }),
})

export const sqliteDialect: Dialect = createDialect(sqlite, {
  name: 'sqlite',
  int64: 'integer',
  tableOptions: sql`strict`,
  now: sql<bigint>`cast(unixepoch('subsec') * 1000 as integer)`,
  tableNames: sql`select name from sqlite_schema where type = 'table'`,
  takesArrays: false,
  rows: values => sql`values (${sql.join(values.map(([value]) => value))})`,
  page<Given extends PageGiven, Row>(
    types: ColumnTypes<Row>,
    build: (p: Parameters<Given>, columns: PageColumns<Row>) => Query<Row>,
  ): ReadStatement<Given, Row> {
    const texts = textsOf(types)
    const guarded = compile<Given>(p => {
      const unlessLong = (column: RawBuilder<unknown>, name: string) =>
        texts.includes(name)
          ? sql`case when octet_length(${column}) > ${p.textBytesMax} then 0 else ${column} end`
          : column
      return build(p, pageColumns(types, unlessLong))
    }, sqlite)
    const whole = compile<Given>(p => build(p, pageColumns(types)), sqlite)
    return {
      kind: 'read',
      ...whole,
      bound: { texts, guarded: { kind: 'read', ...guarded } },
    }
  },
})

function compileAlso<Row>(
  { onlyIf, statement }: AlsoInserts<Row>['sqlite'],
  insert: Pick<ChangeStatement, 'parameters'>,
): Pick<ChangeStatement, 'alsoInserts'> {
  const { sql: text, parameters } = compile(statement, sqlite)
  if (`${parameters}` !== `${insert.parameters}`) {
    throw new Error(
      `it has not the parameters ${insert.parameters} of what it precedes: ${text}`,
    )
  }
  return { alsoInserts: { onlyIf: compile(() => onlyIf, sqlite).sql, sql: text } }
}

const postgres: Compiler = new Kysely({
  dialect: new PostgresDialect({ pool: () => Promise.reject() }),
})

export const postgresDialect: Dialect = createDialect(postgres, {
  name: 'postgres',
  int64: 'bigint',
  tableOptions: sql``,
  now: sql<bigint>`cast(extract(epoch from statement_timestamp()) * 1000 as bigint)`,
  tableNames: sql`
    select table_name as name from information_schema.tables
    where table_schema = current_schema() and table_type = 'BASE TABLE'`,
  takesArrays: true,
  rows: values =>
    sql`select * from unnest(${sql.join(values.map(([value, type]) => sql`${value}::${sql.raw(type)}[]`))})`,
  /** Selects the rows before which the texts have fewer bytes than the bound, without reading a text. */
  page<Given extends PageGiven, Row>(
    types: ColumnTypes<Row>,
    build: (p: Parameters<Given>, columns: PageColumns<Row>) => Query<Row>,
  ): ReadStatement<Given, Row> {
    const names = Object.keys(types)
    const compiled = compile<Given>(p => {
      const query = build(p, pageColumns(types))
      const key = sql.ref(`${names[0]}`)
      return sql`
        select ${columnList(names)} from (
          select *, sum(${bytesOf(types)}) over (order by ${key} rows between unbounded preceding and 1 preceding)
            as bytes_before
          from (${query}) as page
        ) as page
        where coalesce(bytes_before, 0) < ${p.textBytesMax} order by ${key}`
    }, postgres)
    return { kind: 'read', ...compiled }
  },
})

/** Returns the length of all texts of a row in UTF-8, which both databases know without reading them. */
export function bytesOf(types: Readonly<Record<string, ColumnType>>): RawBuilder<number> {
  const lengths = textsOf(types).map(
    text => sql`coalesce(octet_length(${sql.ref(text)}), 0)`,
  )
  return sql.join([sql`0`, ...lengths], sql` + `)
}

function textsOf(types: Readonly<Record<string, ColumnType>>): readonly string[] {
  return Object.entries(types).flatMap(([name, type]) => (type === 'text' ? [name] : []))
}

function pageColumns<Row>(
  types: ColumnTypes<Row>,
  expressionOf: (
    column: RawBuilder<unknown>,
    name: string,
  ) => RawBuilder<unknown> = column => column,
): PageColumns<Row> {
  // Each expression has the type of the column whose name it has.
  return Object.keys(types).map(name =>
    expressionOf(sql.ref(name), name).as(name),
  ) as never
}

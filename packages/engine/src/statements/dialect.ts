import { Kysely, PostgresDialect, type RawBuilder, SqliteDialect, sql } from 'kysely'
import {
  type Change,
  type ColumnType,
  compile,
  compileChange,
  type Order,
  type Page,
  type Parameters,
  type Preceded,
  type Query,
  type Read,
  type TextOf,
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
  read<Given, Row>(build: (p: Parameters<Given>) => Query<Row>): Read<Given, Row>
  /**
   * Defines a page, which ends with the row at which its texts reach a size.
   *
   * @param columns the columns of a row. The first is the key by which `build` orders the page
   * @param build selects each text that counts by `text`
   */
  page<Given extends PageGiven, Row>(
    columns: readonly (keyof Row & string)[],
    build: (p: Parameters<Given>, text: TextOf<Row>) => Query<Row>,
  ): Page<Given, Row>
  change<Given>(
    order: Order<keyof Given & string>,
    build: (p: Parameters<Given>) => Query<unknown> | Preceded,
  ): Change<Given>
  /**
   * Defines the insert of a row, if its key is free. On PostgreSQL any number of them are one statement: one statement
   * for each would cost this process seven times the processor time.
   *
   * @param types the row's columns in the order of writing, and the type of each
   * @param around does more in the same statement. On PostgreSQL it returns the key of each inserted row
   */
  insert<Row>(
    table: string,
    key: keyof Row & string,
    types: Readonly<Record<keyof Row & string, ColumnType>>,
    around?: Around<Row>,
  ): Change<Row>
}

/** Returns a change that also makes this one. */
export type Around<Row> = (change: Query<unknown>, p: Parameters<Row>) => Query<unknown> | Preceded

export interface PageGiven {
  readonly limit: number
}

interface Bounded {
  readonly textBytesMax: number
}

export const columnList = (names: readonly string[]) => sql.join(names.map(name => sql.ref(name)))

// biome-ignore lint/suspicious/noExplicitAny: it compiles statements on any tables, whose types are the caller's
type Compiler = Kysely<any>

function createDialect(compiler: Compiler, parts: Omit<Dialect, 'tables' | 'read' | 'change'>): Dialect {
  return {
    ...parts,
    tables: () => compiler,
    read: build => ({ kind: 'read', ...compile(build, compiler) }),
    change: (order, build) => ({ kind: 'change', order, ...compileChange(build, compiler) }),
  }
}

const sqlite: Compiler = new Kysely({ dialect: new SqliteDialect({ database: () => Promise.reject() }) })

export const sqliteDialect: Dialect = createDialect(sqlite, {
  name: 'sqlite',
  int64: 'integer',
  tableOptions: sql`strict`,
  now: sql<bigint>`cast(unixepoch('subsec') * 1000 as integer)`,
  tableNames: sql`select name from sqlite_schema where type = 'table'`,
  page<Given extends PageGiven, Row>(
    _: readonly string[],
    build: (p: Parameters<Given>, text: TextOf<Row>) => Query<Row>,
  ) {
    const texts: string[] = []
    const guarded = compile<Given & Bounded>(
      p =>
        build(p as Parameters<Given>, column => {
          texts.push(column)
          const text = sql.ref(column)
          const { textBytesMax } = p as Parameters<Bounded>
          return sql<Row[typeof column]>`iif(octet_length(${text}) > ${textBytesMax}, 0, ${text})`.as(column)
        }),
      sqlite,
    )
    return {
      kind: 'page',
      ...compile<Given>(p => build(p, textItself), sqlite),
      guarded: { kind: 'read', ...guarded },
      texts,
    }
  },
  insert: (table, key, types, around = change => change) =>
    insertOf({ compiler: sqlite, table, key, around }, types, values => sql`values (${sql.join(values)})`),
})

const postgres: Compiler = new Kysely({ dialect: new PostgresDialect({ pool: () => Promise.reject() }) })

export const postgresDialect: Dialect = createDialect(postgres, {
  name: 'postgres',
  int64: 'bigint',
  tableOptions: sql``,
  now: sql<bigint>`cast(extract(epoch from statement_timestamp()) * 1000 as bigint)`,
  tableNames: sql`
    select table_name as name from information_schema.tables
    where table_schema = current_schema() and table_type = 'BASE TABLE'`,
  /** Selects the rows before which the texts have fewer bytes than the bound, without reading a text. */
  page<Given extends PageGiven, Row>(
    columns: readonly string[],
    build: (p: Parameters<Given>, text: TextOf<Row>) => Query<Row>,
  ) {
    const texts: string[] = []
    const compiled = compile<Given & Bounded>(p => {
      const query = build(p as Parameters<Given>, column => {
        texts.push(column)
        return textItself(column)
      })
      const bytes = sql.join(
        texts.map(text => sql`coalesce(octet_length(${sql.ref(text)}), 0)`),
        sql` + `,
      )
      const order = sql.ref(`${columns[0]}`)
      return sql`
        select ${columnList(columns)} from (
          select *, sum(${bytes}) over (order by ${order} rows between unbounded preceding and 1 preceding) as bytes_before
          from (${query}) as page
        ) as page
        where coalesce(bytes_before, 0) < ${(p as Parameters<Bounded>).textBytesMax} order by ${order}`
    }, postgres)
    return { kind: 'page', ...compiled, guarded: null, texts }
  },
  insert: (table, key, types, around = change => sql`${change} returning ${sql.ref(key)}`) => ({
    ...insertOf({ compiler: postgres, table, key, around }, types, (values, columnTypes) => {
      const arrays = values.map((value, at) => sql`${value}::${sql.raw(`${columnTypes[at]}`)}[]`)
      return sql`select * from unnest(${sql.join(arrays)})`
    }),
    takesArrays: true,
  }),
})

interface InsertOptions<Row> {
  readonly compiler: Compiler
  readonly table: string
  readonly key: keyof Row & string
  readonly around: Around<Row>
}

function insertOf<Row>(
  { compiler, table, key, around }: InsertOptions<Row>,
  types: Readonly<Record<keyof Row & string, ColumnType>>,
  rowsOf: (values: readonly RawBuilder<unknown>[], types: readonly ColumnType[]) => RawBuilder<unknown>,
): Change<Row> {
  // An object of this type has no other members.
  const columns = Object.keys(types) as (keyof Row & string)[]
  const columnTypes = columns.map(column => types[column])
  const compiled = compileChange<Row>(p => {
    const rows = rowsOf(
      columns.map(column => p[column]),
      columnTypes,
    )
    const insert = sql`insert into ${sql.table(table)} (${columnList(columns)}) ${rows} on conflict do nothing`
    return around(insert, p)
  }, compiler)
  return { kind: 'change', order: { of: table, by: key }, ...compiled }
}

function textItself<Row, Column extends keyof Row & string>(column: Column) {
  return sql.ref<Row[Column]>(column).as(column)
}

import assert from 'node:assert/strict'
import { type Compilable, type QueryExecutorProvider, type RawBuilder, sql } from 'kysely'

export type Value = bigint | number | string | null

/**
 * Returns the placeholder of a parameter, by the name of its value.
 *
 *     dialect.read((p: Parameter<{ id: bigint }>) =>
 *       db.selectFrom('plants').selectAll().where('id', '=', p('id')))
 *     // select * from "plants" where "id" = ?, with the parameters ['id']
 */
export interface Parameter<Values> {
  <Name extends keyof Values & string>(name: Name): RawBuilder<Values[Name]>
  /** Never set. The compiler infers the type of the values from it. */
  readonly valuesType?: Values
}

/** A statement of Kysely's builder, or of `sql` where the databases differ. */
export type Query<Row> = Compilable<Row> | RawBuilder<Row>

/** Returns a statement with the placeholders of its parameters. */
export type Build<Values, Row = unknown> = (p: Parameter<Values>) => Query<Row>

declare const valuesType: unique symbol
declare const rowType: unique symbol

export interface Statement {
  readonly kind: 'read' | 'change'
  readonly sql: string
  /** The names of its parameters, in the order of the placeholders. */
  readonly parameters: readonly string[]
}

export interface ReadStatement<Values = never, Row = unknown> extends Statement {
  readonly kind: 'read'
  /**
   * How SQLite ends a page at its maximum size. On PostgreSQL, the SQL of the statement
   * does this.
   */
  readonly bound?: {
    /** The columns whose size counts. */
    readonly texts: readonly string[]
    /** The same page with 0 in place of each text above `textBytesMax`. */
    readonly guarded: Statement
  }
  /** Never set. The compiler infers types from it. */
  readonly [valuesType]?: (values: Values) => void
  readonly [rowType]?: Row
}

/** The values that every page takes. */
export interface PageBounds {
  readonly limit: number
  /** The page ends with the row at which its texts reach this size in UTF-8. */
  readonly textBytesMax: number
}

export interface ChangeStatement<Values = never> extends Statement {
  readonly kind: 'change'
  readonly order: Order<string>
  /**
   * PostgreSQL: set if each parameter is an array, so that several changes are one
   * statement. It returns this column of each row that it changed, and in a column `rows`
   * how many rows that counts for, if not one.
   */
  readonly key?: string
  /**
   * SQLite: a statement that runs first, in the same transaction and with the same
   * parameters, if the query `onlyIf` returns a row.
   */
  readonly preceding?: { readonly onlyIf: string; readonly sql: string }
  /**
   * SQLite: the change that is made if this one changes nothing. The rows of this one
   * count twice, which tells the two apart.
   */
  readonly otherwise?: Pick<ChangeStatement, 'sql' | 'preceding'>
  readonly [valuesType]?: (values: Values) => void
}

/**
 * Says which changes of a group may be reordered. Groups are sorted, so that all
 * processes lock rows in the same order and cannot deadlock. Changes of different tables
 * may be reordered, and so may changes of one table with different values of `by`. A
 * barrier stays where it is, after all earlier and before all later changes.
 *
 *     dialect.change({ of: 'plants', by: 'id' }, …)  // sorted by id
 *     dialect.change('barrier', …)                   // deletes by name, without ids
 */
export type Order<Name extends string> =
  | { readonly of: string; readonly by: Name }
  | 'barrier'

export type ColumnType = 'bigint' | 'text'

/** The type of each column of such rows. */
export type ColumnsOf<Row> = {
  readonly [Name in keyof Row & string]: NonNullable<Row[Name]> extends bigint
    ? 'bigint'
    : 'text'
}

/** The name of a statement and its values, as plain data that can cross threads. */
export type Change = readonly [name: string, ...values: Value[]]

/** Returns the SQL of a query, with the names of its parameters. */
export function compile<Values>(
  build: Build<Values>,
  compiler: QueryExecutorProvider,
): Pick<Statement, 'sql' | 'parameters'> {
  // The value of a placeholder is a symbol with the name. The statement declares its
  // type.
  const query = build(name => sql.val(Symbol(name)) as RawBuilder<never>)
  const { sql: text, parameters } =
    'isRawBuilder' in query ? query.compile(compiler) : query.compile()
  const names = parameters.map(parameter => {
    assert(
      typeof parameter === 'symbol',
      `a constant must be written with sql.lit: ${String(parameter)} in ${text}`,
    )
    return `${parameter.description}`
  })
  const withoutMargins = text.trim().replaceAll(/\s*\n\s*/g, '\n')
  return { sql: withoutMargins, parameters: names }
}

/** Returns the values of a statement's parameters in the order of its placeholders. */
export function valuesOf({ parameters }: Statement, values: object): Value[] {
  return parameters.map(name => valueNamed(values, name))
}

/** Returns a change with these values. Every change takes it, so it copies once. */
export function changeOf(
  name: string,
  { parameters }: ChangeStatement,
  values: object,
): Change {
  // `push` would take memory for 16 more values.
  const change = new Array<Value>(parameters.length + 1) as [string, ...Value[]]
  change[0] = name
  let index = 1
  for (const parameter of parameters) {
    change[index] = valueNamed(values, parameter)
    index += 1
  }
  return change
}

function valueNamed(values: object, name: string): Value {
  // The compiler has compared the members with the statement's parameters.
  return (values as Readonly<Record<string, Value>>)[name] as Value
}

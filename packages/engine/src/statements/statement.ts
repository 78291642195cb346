import {
  type AliasedRawBuilder,
  type Compilable,
  type QueryExecutorProvider,
  type RawBuilder,
  sql,
} from 'kysely'

export type Value = bigint | number | string | null

/**
 * An expression for each parameter of a statement. In the SQL it becomes a placeholder:
 *
 *     dialect.read((p: Parameters<{ id: bigint }>) => db.selectFrom('plants').selectAll().where('id', '=', p.id))
 *     // select * from "plants" where "id" = ?, with the parameters ['id']
 */
export type Parameters<Given> = {
  readonly [Name in keyof Given]-?: RawBuilder<Given[Name]>
}

/** A statement of Kysely's builder, or of `sql` where the builder cannot say it. */
export type Query<Row> = Compilable<Row> | RawBuilder<Row>

declare const parametersType: unique symbol
declare const rowType: unique symbol

export interface Statement {
  readonly kind: 'read' | 'change'
  readonly sql: string
  /** The names of its parameters, in the order of the placeholders. */
  readonly parameters: readonly string[]
}

export interface ReadStatement<Given = never, Row = unknown> extends Statement {
  readonly kind: 'read'
  /** On SQLite: what ends a page at its size, as its SQL does on PostgreSQL. */
  readonly bound?: {
    /** The texts that count for the size. */
    readonly texts: readonly string[]
    /** The same page with 0 in the place of each text that has more bytes than the parameter `textBytesMax`. */
    readonly guarded: Statement
  }
  /** Only for the compiler. */
  readonly [parametersType]?: (values: Given) => void
  readonly [rowType]?: Row
}

/** What every page is given. */
export interface PageGiven {
  readonly limit: number
  /** The size of all texts in UTF-8 at which the page ends. */
  readonly textBytesMax: number
}

export interface ChangeStatement<Given = never> extends Statement {
  readonly kind: 'change'
  readonly order: Order<string>
  /** Each parameter is an array, so that several changes are one statement. It returns `order.by` of the rows that it changed. */
  readonly takesArrays: boolean
  /** A statement with the same parameters that runs before it in its transaction, if `onlyIf` returns a row. On SQLite. */
  readonly alsoInserts?: { readonly onlyIf: string; readonly sql: string }
  readonly [parametersType]?: (values: Given) => void
}

/**
 * What a change may be exchanged with, so that changes of all processes lock rows in one order. Changes of one table with
 * different values of `by` may be exchanged, and so may changes of different tables. A barrier stays where
 * it is, between all before and all after it.
 *
 *     dialect.change({ of: 'plants', by: 'id' }, …)  // changes of plants are sent in order of id, those of one id as they came
 *     dialect.change('barrier', …)                   // deletes by name, whose ids nobody knows
 */
export type Order<Name extends string> =
  | { readonly of: string; readonly by: Name }
  | 'barrier'

export type ColumnType = 'bigint' | 'text'

/** The type of each column of a row. */
export type ColumnTypes<Row> = {
  readonly [Column in keyof Row & string]: Exclude<Row[Column], null> extends bigint
    ? 'bigint'
    : 'text'
}

/** The columns of a page, to be selected. */
export type PageColumns<Row> = readonly {
  readonly [Column in keyof Row & string]: AliasedRawBuilder<Row[Column], Column>
}[keyof Row & string][]

/** The name of a statement and its values, as plain data that can cross threads. */
export type Change = readonly [name: string, ...values: Value[]]

/** Returns an expression for each parameter. The value of each is a symbol with its name, which the statement then lists. */
function parametersOf<Given>(): Parameters<Given> {
  // A proxy has every member that the type requires.
  return new Proxy(
    {},
    { get: (_, name) => sql.val(Symbol(String(name))) },
  ) as Parameters<Given>
}

/** Returns the SQL of a query, with the names of its parameters. */
export function compile<Given>(
  build: (p: Parameters<Given>) => Query<unknown>,
  compiler: QueryExecutorProvider,
) {
  const query = build(parametersOf<Given>())
  const { sql: text, parameters } =
    'isRawBuilder' in query ? query.compile(compiler) : query.compile()
  const names = parameters.map(parameter => {
    if (typeof parameter === 'symbol') {
      return `${parameter.description}`
    }
    throw new Error(
      `a constant must be written with sql.lit: ${String(parameter)} in ${text}`,
    )
  })
  return { sql: text.trim(), parameters: names }
}

/** Returns the values of a statement's parameters in the order of its placeholders. */
export function valuesOf({ parameters }: Statement, values: object): Value[] {
  // The compiler has compared the members with the statement's parameters.
  return parameters.map(name => (values as Record<string, Value>)[name] as Value)
}

/** Returns these of the parameters, such as the columns of a row. */
export function pick<Given, Name extends keyof Given>(
  p: Parameters<Given>,
  names: readonly Name[],
): Parameters<Pick<Given, Name>> {
  // A proxy has no members to spread.
  return Object.fromEntries(names.map(name => [name, p[name]])) as unknown as Parameters<
    Pick<Given, Name>
  >
}

import type { RawBuilder } from 'kysely'
import type { Dialect, Preceded } from '../schema/dialect.ts'

/** A statement as a function of its parameters. Kysely compiles it once, and the databases keep it prepared. */
type Template<Row = unknown> = (given: never) => RawBuilder<Row> | Preceded

export interface Statement {
  readonly sql: string
  /** The names of its parameters, in the order of the placeholders. */
  readonly parameters: readonly string[]
  /** Statements to run before it, in its transaction and with its values, if the query without parameters returns a row. */
  readonly before?: { readonly ifAny: string; readonly sql: readonly string[] }
}

/** Returns the SQL of each statement. */
export function compile<Name extends string>(
  templates: Readonly<Record<Name, Template>>,
  { compiler }: Dialect,
): Record<Name, Statement> {
  // The value of each parameter is its name, which the compiled statement then lists.
  const names = new Proxy({}, { get: (_, name) => name }) as never
  const compiled = (builder: RawBuilder<unknown>): Statement => {
    const { sql, parameters } = builder.compile(compiler)
    return { sql: sql.trim(), parameters: parameters as readonly string[] }
  }
  const entries = Object.entries<Template>(templates).map(([name, template]) => {
    const built = template(names)
    if (!('last' in built)) return [name, compiled(built)]
    const [ifAny, ...before] = [built.ifAny, ...built.before].map(each => compiled(each).sql)
    return [name, { ...compiled(built.last), before: { ifAny, sql: before } }]
  })
  return Object.fromEntries(entries)
}

export type Value = bigint | number | string | null

/** A statement with its values, as plain data that can cross threads. */
export type Call<Name extends string> = readonly [name: Name, ...values: Value[]]

/** Returns the values of a statement's parameters in the order of its placeholders. */
export function valuesOf({ parameters }: Statement, given: unknown): Value[] {
  return parameters.map(name => (given as Record<string, Value>)[name] as Value)
}

type Given<Templates> = {
  [Name in keyof Templates]: Templates[Name] extends (given: infer Given) => unknown ? Given : never
}
type RowOf<Templates> = {
  [Name in keyof Templates]: Templates[Name] extends Template<infer Row> ? Row : never
}

/** Runs statements. Rejects with DomainError `store-busy` or `store-unavailable`. */
export interface StatementRunner<Reads, Changes> {
  changeOf<Name extends keyof Changes & string>(name: Name, given: Given<Changes>[Name]): Call<Name>
  /** Resolves to the affected rows once the change is durable. */
  submit(change: Call<keyof Changes & string>): Promise<number>
  /** Like `submit`, for changes in one transaction, in order. */
  submitAll(changes: readonly Call<keyof Changes & string>[]): Promise<readonly number[]>
  read<Name extends keyof Reads & string>(
    name: Name,
    given: Given<Reads>[Name],
  ): Promise<readonly RowOf<Reads>[Name][]>
}

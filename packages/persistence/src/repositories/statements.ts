import { type RawBuilder, sql } from 'kysely'
import type { Dialect } from '../schema/dialect.ts'

/** A statement as a function of its parameters. Kysely compiles it once, and the databases keep it prepared. */
type Template<Row = unknown> = (given: never) => RawBuilder<Row>

export interface Statement {
  readonly sql: string
  /** The names of its parameters, in the order of the placeholders. */
  readonly parameters: readonly string[]
}

/** Returns the SQL of each statement. */
export function compile<Name extends string>(
  templates: Readonly<Record<Name, Template>>,
  { compiler }: Dialect,
): Record<Name, Statement> {
  // The value of each parameter is its name, which the compiled statement then lists.
  const names = new Proxy({}, { get: (_, name) => name }) as never
  const entries = Object.entries<Template>(templates).map(([name, template]) => {
    const { sql, parameters } = template(names).compile(compiler)
    return [name, { sql: sql.trim(), parameters }]
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

export function columnList(names: readonly string[]): RawBuilder<unknown> {
  return sql.join(names.map(name => sql.ref(name)))
}

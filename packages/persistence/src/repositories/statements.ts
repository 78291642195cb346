import { type RawBuilder, sql } from 'kysely'
import type { Dialect } from '../schema/dialect.ts'
import {
  type NewTokenRow,
  type PlantRow,
  plantColumns,
  rowColumns,
  type TokenRow,
  textBytesInSql,
  type VersionedRow,
} from '../schema/tables.ts'
import { webhookChanges, webhookReads } from './webhook-statements.ts'

// Each statement is a function of its parameters. Kysely compiles it once, and the databases keep it prepared.

interface Page {
  /** The least id. */
  readonly from: bigint
  readonly limit: number
}

interface PageOfTag extends Page {
  readonly tag: string
}

interface Expected {
  /** `null` equals no version. */
  readonly expected: bigint | null
}

const allColumns = columns(rowColumns)
const tokens = sql<TokenRow>`select name, hash, scopes, created_at, expires_at, last_used_at from access_tokens`

function reads(dialect: Dialect) {
  const page = (selected: RawBuilder<unknown>, { from, limit }: Page) =>
    sql<PlantRow>`select ${selected} from plants where id >= ${from} order by id limit ${limit}`
  const pageOfTag = (selected: RawBuilder<unknown>, { tag, from, limit }: PageOfTag) => sql<PlantRow>`
    select ${selected} from plants where ${dialect.hasTag(tag)} and id >= ${from} order by id limit ${limit}`
  const bytes = sql`${sql.raw(textBytesInSql)} as bytes`
  const sumOf = (page: RawBuilder<unknown>) => sql<{ bytes: bigint | null }>`
    select sum(bytes) as bytes from (${page}) as page`

  return {
    plant: ({ id }: Pick<PlantRow, 'id'>) =>
      sql<VersionedRow>`select ${allColumns} from plants where id = ${id}`,
    page: (given: Page) => page(columns(plantColumns), given),
    pageOfTag: (given: PageOfTag) => pageOfTag(columns(plantColumns), given),
    /** The size of the texts of `page` and `pageOfTag`, which SQLite knows without reading them. */
    pageBytes: (given: Page) => sumOf(page(bytes, given)),
    pageOfTagBytes: (given: PageOfTag) => sumOf(pageOfTag(bytes, given)),
    token: ({ hash }: Pick<TokenRow, 'hash'>) => sql<TokenRow>`${tokens} where hash = ${hash}`,
    tokens: () => tokens,
    ...webhookReads(dialect),
  }
}

function changes(dialect: Dialect) {
  const insert = (row: VersionedRow) => sql`
    insert into plants (${allColumns}) values (${sql.join(rowColumns.map(column => row[column]))})`

  return {
    insertPlant: (row: VersionedRow) => sql`${insert(row)} on conflict do nothing`,
    savePlant: (row: VersionedRow) => sql`
      ${insert(row)} on conflict (id) do update set ${assigned(column => sql.ref(`excluded.${column}`))}`,
    savePlantIf: (row: VersionedRow & Expected) => sql`
      update plants set ${assigned(column => sql`${row[column]}`)}
      where id = ${row.id} and version = ${row.expected}`,
    removePlant: ({ id }: Pick<PlantRow, 'id'>) => sql`delete from plants where id = ${id}`,
    removePlantIf: ({ id, expected }: Pick<PlantRow, 'id'> & Expected) => sql`
      delete from plants where id = ${id} and version = ${expected}`,
    insertToken: ({ name, hash, scopes, created_at, expires_at }: NewTokenRow) => sql`
      insert into access_tokens (name, hash, scopes, created_at, expires_at)
      values (${name}, ${hash}, ${scopes}, ${created_at}, ${expires_at}) on conflict do nothing`,
    markTokenUsed: ({ hash, usedAt }: Pick<TokenRow, 'hash'> & { readonly usedAt: bigint }) => sql`
      update access_tokens set last_used_at = ${usedAt}
      where hash = ${hash} and coalesce(last_used_at < ${usedAt}, true)`,
    removeToken: ({ name }: Pick<TokenRow, 'name'>) => sql`delete from access_tokens where name = ${name}`,
    ...webhookChanges(dialect),
  }
}

function columns(names: readonly string[]): RawBuilder<unknown> {
  return sql.join(names.map(name => sql.ref(name)))
}

/** Returns an assignment to each column but the key. */
function assigned(valued: (column: keyof VersionedRow) => RawBuilder<unknown>): RawBuilder<unknown> {
  const others = rowColumns.filter(column => column !== 'id')
  return sql.join(others.map(column => sql`${sql.ref(column)} = ${valued(column)}`))
}

export type Reads = ReturnType<typeof reads>
export type Changes = ReturnType<typeof changes>

export interface Statement {
  readonly sql: string
  /** The names of its parameters, in the order of the placeholders. */
  readonly parameters: readonly string[]
}

export interface Statements {
  readonly read: Readonly<Record<keyof Reads, Statement>>
  readonly change: Readonly<Record<keyof Changes, Statement>>
}

/** Returns the SQL of every statement, by name. */
export function createStatements(dialect: Dialect): Statements {
  return { read: compiled(dialect, reads(dialect)), change: compiled(dialect, changes(dialect)) }
}

function compiled<Name extends string>(
  { compiler }: Dialect,
  statements: Readonly<Record<Name, (given: never) => RawBuilder<unknown>>>,
): Record<Name, Statement> {
  // The value of each parameter is its name, which the compiled statement then lists.
  const names = new Proxy({}, { get: (_, name) => name }) as never
  const entries = Object.entries<(given: never) => RawBuilder<unknown>>(statements).map(
    ([name, statement]) => {
      const { sql, parameters } = statement(names).compile(compiler)
      return [name, { sql: sql.trim(), parameters }]
    },
  )
  return Object.fromEntries(entries)
}

export type Value = bigint | number | string | null

/** A statement that changes rows, with its values, as plain data that can cross threads. */
export type Change = readonly [name: keyof Changes, ...values: Value[]]

export type Read = readonly [name: keyof Reads, ...values: Value[]]

/** Runs statements. Rejects with DomainError `store-busy` or `store-unavailable`. */
export interface StatementRunner {
  change<Name extends keyof Changes>(name: Name, ...given: Parameters<Changes[Name]>): Change
  /** Resolves to the affected rows once the change is durable. */
  submit(change: Change): Promise<number>
  /** Like `submit`, for changes in one transaction, in order. */
  submitAll(changes: readonly Change[]): Promise<readonly number[]>
  read<Name extends keyof Reads>(
    name: Name,
    ...given: Parameters<Reads[Name]>
  ): Promise<readonly RowOf<Reads[Name]>[]>
  /** Ends with the row at which the texts reach this size in UTF-8. */
  readPage<Name extends 'page' | 'pageOfTag'>(
    name: Name,
    textBytesMax: number,
    ...given: Parameters<Reads[Name]>
  ): Promise<readonly PlantRow[]>
}

type RowOf<Read> = Read extends (...given: never) => RawBuilder<infer Row> ? Row : never

import { int64Min, type PlantPageQuery } from '@plant-store/domain'
import type {
  ChangeStatement,
  Dialect,
  PageBounds,
  PageText,
  Parameter,
} from '@plant-store/engine'
import { type Expression, sql } from 'kysely'
import { plantColumns, type VersionedRow } from './tables.ts'

/**
 * The statements of plants. A list is either all plants or those of a tag. This file has
 * what both databases say alike. Inserts and saves are in `sqlite.ts` and `postgres.ts`.
 */
export type PlantStatements = ReturnType<typeof readsOn> & PlantChangeStatements

/** The statements that change plants, which are announced to webhooks or not. */
export interface PlantChangeStatements {
  /** Under a taken id, it changes nothing. */
  readonly insert: ChangeStatement<VersionedRow>
  /** Inserts, or replaces and counts two rows. */
  readonly save: ChangeStatement<VersionedRow>
  readonly saveIf: ChangeStatement<VersionedRow & Expected>
  readonly remove: ChangeStatement<Id>
  readonly removeIf: ChangeStatement<Id & Expected>
}

/** Changes of one plant keep their order. */
export const byId = { of: 'plants', by: 'id' } as const

export type Id = Pick<VersionedRow, 'id'>

/** Changes only the plant of this version. `null` equals none. */
export interface Expected {
  readonly expected: bigint | null
}

/** The filters of a list, which are those of the domain. */
type Filters = {
  readonly [Filter in Exclude<keyof PlantPageQuery, 'after' | keyof PageBounds>]-?:
    | PlantPageQuery[Filter]
    | undefined
}

interface Page extends Filters, PageBounds {
  /** The least id. */
  readonly from: bigint
}

/** Returns the parameters that every statement of a list takes. */
export function boundsOf(query: PlantPageQuery): Page {
  const { limit, after, tag, textBytesMax = Number.MAX_SAFE_INTEGER } = query
  const from = after === undefined ? int64Min : after + 1n
  return { from, limit, tag, textBytesMax }
}

/** Returns the statements that read. Both databases have the same. */
export function readsOn(dialect: Dialect) {
  const db = dialect.tables<{ plants: VersionedRow }>()
  return {
    find: dialect.read((p: Parameter<Id>) =>
      db
        .selectFrom('plants')
        .select(['id', 'name', 'tag', 'version'])
        .where('id', '=', p('id')),
    ),

    all: listStatements(dialect, ({ tag: _, ...others }) => others),
    ofTag: listStatements(dialect, filters => filters),
  }
}

/** Returns the queries of the changes that both databases say alike. */
export function changeQueriesOn(dialect: Dialect) {
  const db = dialect.tables<{ plants: VersionedRow }>()
  const remove = (p: Parameter<Id>) => db.deleteFrom('plants').where('id', '=', p('id'))
  return {
    saveIf: (p: Parameter<VersionedRow & Expected>) =>
      db
        .updateTable('plants')
        .set({ name: p('name'), tag: p('tag'), version: p('version') })
        .where('id', '=', p('id'))
        .where('version', '=', p('expected')),
    remove,
    removeIf: (p: Parameter<Id & Expected>) =>
      remove(p).where('version', '=', p('expected')),
  }
}

interface WindowRow {
  /** The last id, or `null` if the list has no more plants. */
  readonly last: bigint | null
  readonly count: bigint
  readonly bytes: bigint | null
}

type Conditions = Readonly<Record<keyof Filters, Expression<boolean>>>

/** Returns the statements of a list with some of the filters. */
function listStatements(
  { name, tables, read, page }: Dialect,
  select: (filters: Conditions) => Partial<Conditions>,
) {
  const plants = tables<{ plants: VersionedRow }>().selectFrom('plants')
  const { hasTag, nameContains } = termsOf[name]
  /** Each filter of the domain. Omitting one is a compile error. */
  const filtered = (p: Parameter<Filters>) =>
    Object.values(select({ tag: hasTag(p('tag')) })).reduce(
      (list, condition) => list.where(condition),
      plants,
    )
  const following = (p: Parameter<Page>) =>
    filtered(p).where('id', '>=', p('from')).orderBy('id').limit(p('limit'))
  const pageOf = (p: Parameter<Page>, text: PageText) =>
    following(p).select(({ ref }) => [
      'id',
      text(ref('name')).as('name'),
      text(ref('tag')).as('tag'),
    ])

  return {
    /** The plants of a list from an id on. */
    page: page(plantColumns, pageOf),
    /** The same page, with the number of plants in the whole list up to `countMax`. */
    counted: page(
      { ...plantColumns, total: 'bigint' },
      (p: Parameter<Page & { countMax: number }>, text) => {
        const counted = filtered(p).select(sql.lit(1).as('one')).limit(p('countMax'))
        const total = sql<bigint>`(select count(*) as "count" from ${counted.as('counted')})`
        return pageOf(p, text).select(total.as('total'))
      },
    ),
    /** The part of a list that one search looks at. */
    window: read((p: Parameter<Page>) => {
      const sizes = following(p).select(['id', nameBytes]).as('sizes')
      return sql<WindowRow>`
        select max("id") as "last", count(*) as "count", sum("bytes") as "bytes" from ${sizes}`
    }),
    /** The plants of such a part, up to the id `to`, whose names contain a text. */
    search: page(
      plantColumns,
      (p: Parameter<Page & { to: bigint; name_contains: string }>, text) =>
        pageOf(p, text)
          .where('id', '<=', p('to'))
          .where(nameContains(p('name_contains'))),
    ),
  }
}

/** The terms that the databases say in different ways. */
const termsOf = {
  sqlite: {
    hasTag: (tag: Expression<unknown>) => sql<boolean>`tag = ${tag}`,
    /** SQLite's `lower` changes only A to Z. */
    nameContains: (text: Expression<string>) =>
      sql<boolean>`instr(lower(name), lower(${text})) > 0`,
  },
  postgres: {
    /** The index has only the start of a tag, with this collation. */
    hasTag: (tag: Expression<unknown>) => sql<boolean>`
      substr(tag, 1, 200) collate "C" = substr(${tag}::text, 1, 200) and tag = ${tag}`,
    /** With the collation "C", its `lower` changes only A to Z, as SQLite's does. */
    nameContains: (text: Expression<string>) => sql<boolean>`
      strpos(lower(name collate "C"), lower(${text}::text collate "C")) > 0`,
  },
}

/**
 * The size of a name, which both databases know without reading it. It stands in the
 * inner query, because SQLite stores the rows of a limited query, with the names if it
 * returns them.
 */
const nameBytes = sql<number>`octet_length(name)`.as('bytes')

import {
  type AlsoInserts,
  type ColumnTypes,
  type Dialect,
  type PageColumns,
  type PageGiven,
  type Parameters,
  pick,
} from '@plant-store/engine'
import { type RawBuilder, type SelectQueryBuilder, sql } from 'kysely'
import {
  type PlantRow,
  plantColumns,
  type VersionedRow,
  versionedColumns,
  versionedNames,
} from './tables.ts'

const assigned = versionedNames.filter(name => name !== 'id')

/** A page of plants from the least id on. */
interface From extends PageGiven {
  readonly from: bigint
}

/** A row of a page, with the number of plants in the whole list. */
interface CountedRow extends PlantRow {
  total: bigint
}
const countedColumns = {
  ...plantColumns,
  total: 'bigint',
} as const satisfies ColumnTypes<CountedRow>

/** Changes of one plant keep their order. */
const order = { of: 'plants', by: 'id' } as const

/** @param also what adding plants does besides */
export function plantStatements(dialect: Dialect, also?: AlsoInserts<VersionedRow>) {
  const db = dialect.tables<Tables>()
  const plants = db.selectFrom('plants')
  const all = listStatements(dialect, () => plants)
  const ofTag = listStatements(dialect, (p: Parameters<{ tag?: string | undefined }>) =>
    plants.where(hasTag(dialect, p.tag)),
  )
  /** Only the plant of this version. `null` equals none. */
  type Expected = { readonly id: bigint; readonly expected: bigint | null }

  return {
    find: dialect.read((p: Parameters<{ id: bigint }>) =>
      db.selectFrom('plants').select(versionedNames).where('id', '=', p.id),
    ),
    ...all,
    pageOfTag: ofTag.page,
    countedOfTag: ofTag.counted,
    spanOfTag: ofTag.span,
    searchOfTag: ofTag.search,
    // insert into plants (id, name, tag, version) values (?, ?, ?, ?) on conflict do nothing
    insert: dialect.insert(db, 'plants', 'id', versionedColumns, also),
    save: dialect.save(db, 'plants', 'id', versionedColumns, also),
    saveIf: dialect.change(order, (p: Parameters<VersionedRow & Expected>) =>
      db
        .updateTable('plants')
        .set(pick(p, assigned))
        .where('id', '=', p.id)
        .where('version', '=', p.expected),
    ),
    remove: dialect.change(order, (p: Parameters<{ id: bigint }>) =>
      db.deleteFrom('plants').where('id', '=', p.id),
    ),
    removeIf: dialect.change(order, (p: Parameters<Expected>) =>
      db.deleteFrom('plants').where('id', '=', p.id).where('version', '=', p.expected),
    ),
  }
}

type Tables = { plants: VersionedRow }

/** Returns the statements that read a list, such as the plants of a tag. */
function listStatements<Given extends object>(
  dialect: Dialect,
  listOf: (p: Parameters<Given>) => SelectQueryBuilder<Tables, 'plants', object>,
) {
  const db = dialect.tables<Tables>()
  type Span = { readonly from: bigint; readonly limit: number }
  const spanOf = (p: Parameters<Span & Given>) =>
    listOf(p).where('id', '>=', p.from).orderBy('id').limit(p.limit)

  return {
    page: dialect.page(
      plantColumns,
      (p: Parameters<From & Given>, columns: PageColumns<PlantRow>) =>
        spanOf(p).select(columns),
    ),
    counted: dialect.page(
      countedColumns,
      (
        p: Parameters<From & Given & { countMax: number }>,
        columns: PageColumns<CountedRow>,
      ) => {
        const some = listOf(p).select(sql.lit(1).as('one')).limit(p.countMax).as('some')
        const total = db
          .selectFrom(some)
          .select(({ fn }) => fn.countAll<bigint>().as('total'))
        const each = listOf(p).selectAll().select(total.as('total')).as('plants')
        return db
          .selectFrom(each)
          .select(columns)
          .where('id', '>=', p.from)
          .orderBy('id')
          .limit(p.limit)
      },
    ),
    /**
     * Returns the last id, the number and the total size of the names of the next plants,
     * without reading the names. The inner query returns each size, because SQLite
     * stores the rows of a limited query, with the names if it returns them.
     */
    span: dialect.read((p: Parameters<Span & Given>) => {
      const sizes = spanOf(p)
        .select('id')
        .select(sql<number>`octet_length(${sql.ref('name')})`.as('bytes'))
      return db
        .selectFrom(sizes.as('some'))
        .select(({ fn }) => [
          fn.max('id').as('last'),
          fn.countAll<bigint>().as('count'),
          fn.sum<bigint | null>('bytes').as('bytes'),
        ])
    }),
    /** Looks at the plants up to and with `to`. */
    search: dialect.page(
      plantColumns,
      (p: Parameters<From & Given & Searched>, columns: PageColumns<PlantRow>) =>
        spanOf(p)
          .select(columns)
          .where('id', '<=', p.to)
          .where(nameContains(dialect, p.name_contains)),
    ),
  }
}

interface Searched {
  readonly to: bigint
  readonly name_contains: string
}

/** SQLite's `lower` changes A to Z only, and so does PostgreSQL's with the collation "C". */
const nameContains = ({ name }: Dialect, text: RawBuilder<string>) =>
  name === 'sqlite'
    ? sql<boolean>`instr(lower(${sql.ref('name')}), lower(${text})) > 0`
    : sql<boolean>`strpos(lower(${sql.ref('name')} collate "C"), lower(${text}::text collate "C")) > 0`

export type PlantStatements = ReturnType<typeof plantStatements>

/** The start of a tag, short enough for an entry of PostgreSQL's index, of at most 2,704 bytes. */
const startOf = (tag: RawBuilder<unknown>) => sql`substr(${tag}, 1, 200)`

/** The index of tags. The builder has no expressions in an index. */
export const tagIndex = ({ name }: Dialect) =>
  name === 'sqlite' ? sql`tag, id` : sql`${startOf(sql.ref('tag'))}, id`

/** A condition that this index serves. */
const hasTag = ({ name }: Dialect, tag: RawBuilder<unknown>) =>
  name === 'sqlite'
    ? sql<boolean>`tag = ${tag}`
    : sql<boolean>`${startOf(sql.ref('tag'))} = ${startOf(sql`${tag}::text`)} and tag = ${tag}`

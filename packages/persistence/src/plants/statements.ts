import type {
  ChangeStatement,
  Dialect,
  PageBounds,
  ReadStatement,
} from '@plant-store/engine'
import { sql } from 'kysely'
import type { PlantRow, VersionedRow } from './tables.ts'

/**
 * The statements of plants. `sqlite.ts` and `postgres.ts` have them as each database gets
 * them, except those in `sharedStatements`. A list is either all plants or, `…OfTag`,
 * those of a tag.
 */
export interface PlantStatements {
  readonly find: ReadStatement<Id, VersionedRow>

  /** The plants of a list from an id on. */
  readonly page: ReadStatement<Page, PlantRow>
  readonly pageOfTag: ReadStatement<Page & OfTag, PlantRow>
  /** The same page, with the number of plants in the whole list. */
  readonly counted: ReadStatement<Page & Counted, CountedRow>
  readonly countedOfTag: ReadStatement<Page & Counted & OfTag, CountedRow>
  /** The part of a list that one search looks at. */
  readonly window: ReadStatement<Window, WindowRow>
  readonly windowOfTag: ReadStatement<Window & OfTag, WindowRow>
  /** The plants of such a part whose names contain a text. */
  readonly search: ReadStatement<Page & Searched, PlantRow>
  readonly searchOfTag: ReadStatement<Page & Searched & OfTag, PlantRow>

  /** Under a taken id, it changes nothing. */
  readonly insert: ChangeStatement<VersionedRow>
  readonly insertUnannounced: ChangeStatement<VersionedRow>
  /** Inserts or replaces. */
  readonly save: ChangeStatement<VersionedRow>
  readonly saveUnannounced: ChangeStatement<VersionedRow>
  readonly saveIf: ChangeStatement<VersionedRow & Expected>
  readonly remove: ChangeStatement<Id>
  readonly removeIf: ChangeStatement<Id & Expected>
}

interface Id {
  readonly id: bigint
}

/** Changes only the plant of this version. `null` equals none. */
interface Expected {
  readonly expected: bigint | null
}

export interface Page extends PageBounds {
  /** The least id. */
  readonly from: bigint
}

export interface OfTag {
  readonly tag: string | undefined
}

interface Counted {
  /** Counting stops here. */
  readonly countMax: number
}

interface CountedRow extends PlantRow {
  total: bigint
}

interface Window {
  readonly from: bigint
  readonly limit: number
}

interface WindowRow {
  /** The last id, or `null` if the list has no more plants. */
  last: bigint | null
  count: bigint
  /** The size of all names in UTF-8. */
  bytes: bigint | null
}

interface Searched {
  /** The last id that the search looks at. */
  readonly to: bigint
  readonly name_contains: string
}

/** Changes of one plant keep their order. */
export const byId = { of: 'plants', by: 'id' } as const

type Shared = 'find' | 'window' | 'saveIf' | 'remove' | 'removeIf'

/** Returns the statements that are the same on both databases. */
export function sharedStatements(dialect: Dialect): Pick<PlantStatements, Shared> {
  const { read, change } = dialect
  const db = dialect.tables<{ plants: VersionedRow }>()
  return {
    find: read(p =>
      db
        .selectFrom('plants')
        .select(['id', 'name', 'tag', 'version'])
        .where('id', '=', p('id')),
    ),
    window: read(p => {
      const sizes = db
        .selectFrom('plants')
        .select('id')
        .select(nameBytes)
        .where('id', '>=', p('from'))
        .orderBy('id')
        .limit(p('limit'))
      return db
        .selectFrom(sizes.as('sizes'))
        .select(({ fn }) => [
          fn.max('id').as('last'),
          fn.countAll<bigint>().as('count'),
          fn.sum<bigint | null>('bytes').as('bytes'),
        ])
    }),
    saveIf: change(byId, p =>
      db
        .updateTable('plants')
        .set({ name: p('name'), tag: p('tag'), version: p('version') })
        .where('id', '=', p('id'))
        .where('version', '=', p('expected')),
    ),
    remove: change(byId, p => db.deleteFrom('plants').where('id', '=', p('id'))),
    removeIf: change(byId, p =>
      db
        .deleteFrom('plants')
        .where('id', '=', p('id'))
        .where('version', '=', p('expected')),
    ),
  }
}

/**
 * The size of a name, which both databases know without reading it. It stands in the
 * inner query, because SQLite stores the rows of a limited query, with the names if it
 * returns them.
 */
const nameBytes = sql<number>`octet_length(name)`.as('bytes')

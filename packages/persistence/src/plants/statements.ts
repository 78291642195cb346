import {
  type Around,
  type Dialect,
  type PageColumns,
  type PageGiven,
  type Parameters,
  pick,
} from '@plant-store/engine'
import { type RawBuilder, sql } from 'kysely'
import { type PlantRow, plantColumns, type VersionedRow, versionedColumns, versionedNames } from './tables.ts'

const assigned = versionedNames.filter(name => name !== 'id')

/** A page of plants from the least id on. */
interface From extends PageGiven {
  readonly from: bigint
}

/** Changes of one plant keep their order. */
const order = { of: 'plants', by: 'id' } as const

export function plantStatements(dialect: Dialect, announcing: Around<VersionedRow>) {
  const db = dialect.tables<{ plants: VersionedRow }>()
  const page = (p: Parameters<From>, columns: PageColumns<PlantRow>) =>
    db.selectFrom('plants').select(columns).where('id', '>=', p.from).orderBy('id').limit(p.limit)
  /** Only the plant of this version. `null` equals none. */
  type Expected = { readonly id: bigint; readonly expected: bigint | null }

  return {
    find: dialect.read((p: Parameters<{ id: bigint }>) =>
      db.selectFrom('plants').select(versionedNames).where('id', '=', p.id),
    ),
    page: dialect.page(plantColumns, page),
    pageOfTag: dialect.page(
      plantColumns,
      (p: Parameters<From & { tag: string }>, columns: PageColumns<PlantRow>) =>
        page(p, columns).where(hasTag(dialect, p.tag)),
    ),
    insert: dialect.insert(db, 'plants', 'id', versionedColumns, announcing),
    insertUnannounced: dialect.insert(db, 'plants', 'id', versionedColumns),
    save: dialect.save(db, 'plants', 'id', versionedColumns, announcing),
    saveUnannounced: dialect.save(db, 'plants', 'id', versionedColumns),
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

export type PlantStatements = ReturnType<typeof plantStatements>

/** The start of a tag, short enough for an entry of PostgreSQL's index, of at most 2,704 bytes. */
const startOf = (tag: RawBuilder<unknown>) => sql`substr(${tag}, 1, 200)`

/** The index of tags. The builder has no expressions in an index. */
export const tagIndex = ({ name }: Dialect) =>
  name === 'sqlite' ? sql`tag, id` : sql`${startOf(sql.ref('tag'))}, id`

/** A condition that this index serves. */
const hasTag = ({ name }: Dialect, tag: RawBuilder<string>) =>
  name === 'sqlite'
    ? sql<boolean>`tag = ${tag}`
    : sql<boolean>`${startOf(sql.ref('tag'))} = ${startOf(sql`${tag}::text`)} and tag = ${tag}`

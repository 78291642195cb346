import {
  type Dialect,
  type MainStorage,
  type PageBounds,
  type PageText,
  type Parameter,
  postgresDialect,
  type ReadStatement,
  type Runner,
  sqliteDialect,
  storesOf,
} from '@plant-store/engine'
import { entities, entityOf, type Note, type Tables } from './notes.ts'

// The compiler refuses all of this. `tsc` fails if a line below `@ts-expect-error`
// compiles.

export function statements(dialect: Dialect) {
  const db = dialect.tables<Tables>()
  const notes = db.selectFrom('notes')
  const update = db.updateTable('notes')
  const order = { of: 'notes', by: 'id' } as const
  type Id = Parameter<{ id: bigint }>
  type Rename = Parameter<{ id: bigint; text: string }>
  type Bounds = Parameter<PageBounds>
  const find = dialect.read((p: Id) => notes.select('text').where('id', '=', p('id')))
  const rename = dialect.change(order, (p: Rename) =>
    update.set({ text: p('text') }).where('id', '=', p('id')),
  )
  const columns = { id: 'bigint', text: 'text' } as const
  const ofPage = (p: Bounds, text: PageText) =>
    notes.select(({ ref }) => ['id', text(ref('text')).as('text')]).limit(p('limit'))
  const page = dialect.page(columns, ofPage)

  const misspelt = {
    // @ts-expect-error a parameter
    parameter: dialect.read((p: Id) => notes.select('id').where('id', '=', p('idd'))),
    // @ts-expect-error a column of a page
    column: dialect.page({ id: 'bigint', txt: 'text' }, ofPage),
    // @ts-expect-error a text of a page
    text: dialect.page(columns, (_: Bounds, text) => notes.select(({ ref }) => text(ref('txt')).as('text'))),
    // @ts-expect-error the column of an order
    order: dialect.change({ of: 'notes', by: 'idd' }, (p: Id) =>
      db.deleteFrom('notes').where('id', '=', p('id')),
    ),
  }

  const wrong = {
    // @ts-expect-error a parameter of another type than its column
    type: dialect.read((p: Parameter<{ id: string }>) => notes.select('id').where('id', '=', p('id'))),
    // @ts-expect-error a change that declares no order
    unordered: dialect.change((p: Id) => db.deleteFrom('notes').where('id', '=', p('id'))),
    // @ts-expect-error a change among the reads
    kind: dialect.read(order, (p: Id) => db.deleteFrom('notes').where('id', '=', p('id'))),
    // @ts-expect-error a barrier for several changes, each of which must stay where it is
    barrier: postgresDialect.changeMany('barrier', (p: Id) =>
      db.deleteFrom('notes').where('id', '=', p('id')),
    ),
  }
  return { find, rename, page, misspelt, wrong }
}

/** The statements of both databases have one type, so neither may differ from it. */
export const declared: {
  find: ReadStatement<{ id: bigint }, Note>
} = {
  // @ts-expect-error a column is missing
  find: sqliteDialect.read(p =>
    sqliteDialect.tables<Tables>().selectFrom('notes').select(['id', 'text']).where('id', '=', p('id')),
  ),
}

export async function values(
  { bind, submit, read }: Runner,
  { find, rename, page }: ReturnType<typeof statements>,
) {
  // @ts-expect-error a forgotten value of a read
  await read(find, {})
  // @ts-expect-error a misspelt value
  bind(rename, { id: 1n, txt: 'a' })
  // @ts-expect-error a read where a change belongs
  await submit(find, { id: 1n })
  // @ts-expect-error a page without its bound
  await read(page, { limit: 1 })
  const [row] = await read(find, { id: 1n })
  const text: string | undefined = row?.text
  // @ts-expect-error a column that was not selected
  return [text, row?.id]
}

const tables = ['notes'] as const
const { compile } = entities.notes

export const stores = [
  // @ts-expect-error an entity without statements
  storesOf({ a: { tables, migrations: {}, rows: null } }),
  // @ts-expect-error an entity without a decision about its rows
  storesOf({ a: { tables, migrations: {}, compile } }),
  // @ts-expect-error an entity with the name of what every storage has
  storesOf({ check: entityOf('notes') }),
]

type Entered = Pick<typeof entities, 'notes'>

export async function missing(storage: MainStorage<Entered>) {
  // @ts-expect-error an entity that is missing from the list
  await storage.gardens.find(1n)
}

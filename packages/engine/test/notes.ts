import {
  type Dialect,
  type Entity,
  type Migration,
  type PageBounds,
  type Parameter,
  postgresDialect,
  type Query,
  sqliteDialect,
  storesOf,
} from '@plant-store/engine'
import { type RawBuilder, sql } from 'kysely'

export const int64Min = -(2n ** 63n)

/** Two entities with the same columns, as somebody else would define them. */
export interface Tables {
  notes: Note
  gardens: Note
}

export interface Note {
  readonly id: bigint
  readonly text: string
  readonly topic: string | null
}

export interface Notes {
  insert(note: Note): Promise<boolean>
  insertAll(notes: readonly Note[]): Promise<readonly boolean[]>
  save(note: Note): Promise<void>
  remove(id: bigint): Promise<boolean>
  clear(): Promise<number>
  find(id: bigint): Promise<Note | undefined>
  page(limit: number, textBytesMax?: number): Promise<readonly Note[]>
}

const columns = { id: 'bigint', text: 'text', topic: 'text' } as const

type Page = PageBounds & { readonly from: bigint }

export function statementsOf(table: keyof Tables, dialect: Dialect) {
  const { name, tables, read, change } = dialect
  const db = tables<Tables>()
  const byId = { of: table, by: 'id' } as const
  const into = sql.table(table)
  const insert = (p: Parameter<Note>): Query<unknown> => sql`
    insert into ${into} (id, text, topic) ${rowsOf(name, p)} on conflict do nothing`
  const save = (p: Parameter<Note>): Query<unknown> => sql`
    insert into ${into} (id, text, topic) ${rowsOf(name, p)}
    on conflict (id) do update set text = excluded.text, topic = excluded.topic`
  const { changeMany } = postgresDialect
  const ofSqlite = {
    insert: sqliteDialect.change(byId, insert),
    save: sqliteDialect.change(byId, save),
  }
  const ofPostgres = {
    insert: changeMany<Note>(byId, p => sql`${insert(p)} returning id`),
    save: changeMany<Note>(byId, p => sql`${save(p)} returning id`),
  }
  type Id = Parameter<{ id: bigint }>
  return {
    find: read((p: Id) =>
      db.selectFrom(table).select(['id', 'text', 'topic']).where('id', '=', p('id')),
    ),
    page: pageOf(table, dialect),
    ...(name === 'sqlite' ? ofSqlite : ofPostgres),
    remove: change(byId, (p: Id) => db.deleteFrom(table).where('id', '=', p('id'))),
    clear: change('barrier', () => db.deleteFrom(table)),
  }
}

function rowsOf(name: Dialect['name'], p: Parameter<Note>): RawBuilder<unknown> {
  return name === 'sqlite'
    ? sql`values (${p('id')}, ${p('text')}, ${p('topic')})`
    : sql`
        select * from
        unnest(${p('id')}::bigint[], ${p('text')}::text[], ${p('topic')}::text[])`
}

export function pageOf(table: keyof Tables, { tables, page }: Dialect) {
  const notes = tables<Tables>().selectFrom(table)
  return page(columns, (p: Parameter<Page>, text) =>
    notes
      .select(({ ref }) => [
        'id',
        text(ref('text')).as('text'),
        text(ref('topic')).as('topic'),
      ])
      .where('id', '>=', p('from'))
      .orderBy('id')
      .limit(p('limit')),
  )
}

export const createTable =
  (table: string): Migration =>
  (db, { int64, tableOptions }) =>
    sql`
      create table ${sql.table(table)} (
        id ${int64} not null primary key, text text not null, topic text
      ) ${tableOptions}`.execute(db)

export const entityOf = (table: keyof Tables): Entity<Notes, Note> => ({
  tables: [table],
  migrations: { 1: createTable(table) },
  rows: { columns, from: (note: Note) => note, parse: (note: Note) => note },
  compile(dialect) {
    const statements = statementsOf(table, dialect)
    return {
      statements,
      port: ({ bind, submit, submitAll, read }) => ({
        insert: async note => (await submit(statements.insert, note)) === 1,
        insertAll: async notes =>
          (await submitAll(notes.map(note => bind(statements.insert, note)))).map(
            rows => rows === 1,
          ),
        save: async note => void (await submit(statements.save, note)),
        remove: async id => (await submit(statements.remove, { id })) === 1,
        clear: () => submit(statements.clear, {}),
        find: async id => (await read(statements.find, { id }))[0],
        page: (limit, textBytesMax = Number.MAX_SAFE_INTEGER) =>
          read(statements.page, { from: int64Min, limit, textBytesMax }),
      }),
    }
  },
})

/** A restore names the gardens that it changes. */
const gardens: Entity<Notes, Note> = {
  ...entityOf('gardens'),
  restoredBy: { key: 'id', name: 'text' },
}

export const entities = { notes: entityOf('notes'), gardens }
export type Entered = typeof entities

export const {
  attachStorage,
  backUpStore,
  inspectStore,
  openReader,
  openSalvage,
  openStorage,
  planOpening,
  restoreStore,
} = storesOf(entities)

export const note = (
  id: bigint | number,
  text = `note ${id}`,
  topic: string | null = null,
): Note => ({
  id: BigInt(id),
  text,
  topic,
})

/** Returns notes with consecutive ids. */
export function notesFrom(firstId: number, count: number): readonly Note[] {
  return Array.from({ length: count }, (_, n) => note(firstId + n))
}

import {
  type AlsoInserts,
  createStores,
  type Dialect,
  type Entity,
  type Migration,
  type PageColumns,
  type PageGiven,
  type Parameters,
} from '@plant-store/engine'

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

export const columns = { id: 'bigint', text: 'text', topic: 'text' } as const
const names = ['id', 'text', 'topic'] as const

export function statementsOf(
  table: keyof Tables,
  dialect: Dialect,
  also?: AlsoInserts<Note>,
) {
  const db = dialect.tables<Tables>()
  const order = { of: table, by: 'id' } as const
  type Id = Parameters<{ id: bigint }>
  return {
    find: dialect.read((p: Id) =>
      db.selectFrom(table).select(names).where('id', '=', p.id),
    ),
    page: dialect.page(
      columns,
      (p: Parameters<PageGiven & { from: bigint }>, ofPage: PageColumns<Note>) =>
        db
          .selectFrom(table)
          .select(ofPage)
          .where('id', '>=', p.from)
          .orderBy('id')
          .limit(p.limit),
    ),
    insert: dialect.insert(db, table, 'id', columns, also),
    save: dialect.save(db, table, 'id', columns, also),
    remove: dialect.change(order, (p: Id) => db.deleteFrom(table).where('id', '=', p.id)),
    clear: dialect.change('barrier', () => db.deleteFrom(table)),
  }
}

export const createTable =
  (table: string): Migration =>
  (db, { int64, tableOptions }) =>
    db.schema
      .createTable(table)
      .addColumn('id', int64, column => column.primaryKey().notNull())
      .addColumn('text', 'text', column => column.notNull())
      .addColumn('topic', 'text')
      .modifyEnd(tableOptions)
      .execute()

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

export const entities = { notes: entityOf('notes'), gardens: entityOf('gardens') }
export type Entered = typeof entities

export const {
  openStorage,
  attachStorage,
  openReader,
  openSalvage,
  inspectStore,
  backUpStore,
  restoreStore,
} = createStores(entities)

export const note = (
  id: bigint | number,
  text = `note ${id}`,
  topic: string | null = null,
): Note => ({
  id: BigInt(id),
  text,
  topic,
})

import type { Entity, Parameter } from '@plant-store/engine'

interface Note {
  id: bigint
  text: string
}

interface Notes {
  add(note: Note): Promise<boolean>
  find(id: bigint): Promise<string | undefined>
}

export const notes: Entity<Notes> = {
  tables: ['notes'],
  migrations: {
    1: (db, { int64 }) =>
      db.schema
        .createTable('notes')
        .addColumn('id', int64, id => id.primaryKey().notNull())
        .addColumn('text', 'text', text => text.notNull())
        .execute(),
  },
  rows: null,
  compile({ tables, read, change }) {
    const db = tables<{ notes: Note }>()
    const find = read((p: Parameter<{ id: bigint }>) =>
      db.selectFrom('notes').select('text').where('id', '=', p('id')),
    )
    const add = change({ of: 'notes', by: 'id' }, (p: Parameter<Note>) =>
      db
        .insertInto('notes')
        .values({ id: p('id'), text: p('text') })
        .onConflict(conflict => conflict.doNothing()),
    )
    return {
      statements: { find, add },
      port: runner => ({
        add: async note => (await runner.submit(add, note)) === 1,
        find: async id => (await runner.read(find, { id }))[0]?.text,
      }),
    }
  },
}

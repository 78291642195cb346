import type { Entity, Parameter } from '@plant-store/engine'
import { sql } from 'kysely'

interface Note {
  id: bigint
  text: string
}

export const notes = {
  tables: ['notes'],
  migrations: {
    1: db => sql`create table notes (id bigint primary key, text text)`.execute(db),
  },
  rows: null,
  compile({ tables, read, change }) {
    const db = tables<{ notes: Note }>()
    const find = read((p: Parameter<{ id: bigint }>) =>
      db.selectFrom('notes').select('text').where('id', '=', p('id')),
    )
    const add = change({ of: 'notes', by: 'id' }, (p: Parameter<Note>) =>
      db.insertInto('notes').values({ id: p('id'), text: p('text') }),
    )
    return {
      statements: { find, add },
      port: ({ submit, read }) => ({
        add: (note: Note) => submit(add, note),
        find: (id: bigint) => read(find, { id }),
      }),
    }
  },
} satisfies Entity

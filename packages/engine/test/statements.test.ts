import { type Parameter, postgresDialect, sqliteDialect } from '@plant-store/engine'
import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { valuesOf } from '../src/statements/statement.ts'
import type { Note, Tables } from './notes.ts'

describe.each([sqliteDialect, postgresDialect])('on $name', dialect => {
  const db = dialect.tables<Tables>()

  test('values are in the order of the placeholders, repeated ones too', () => {
    const statement = dialect.change(
      { of: 'notes', by: 'id' },
      (p: Parameter<Pick<Note, 'id' | 'text'>>) =>
        db
          .updateTable('notes')
          .set({ text: p('text') })
          .where('id', '=', p('id'))
          .where(({ or, eb }) =>
            or([eb('text', '<', p('text')), eb('topic', '=', sql.lit('no parameter'))]),
          ),
    )

    expect(statement.sql.match(/\?|\$\d/g)).toHaveLength(3)
    const values = valuesOf(statement, { id: 1n, text: 'a' })
    expect(values).toEqual(['a', 1n, 'a'])
  })

  test('a constant that is neither parameter nor literal is refused', () => {
    const read = () =>
      dialect.read(() => db.selectFrom('notes').select('id').where('text', '=', 'a'))

    expect(read).toThrow(/^a constant must be written with sql.lit: a in select /)
  })
})

test('a statement that precedes an insert must take the same values', () => {
  const insertAfter = (...names: (keyof Note)[]) =>
    sqliteDialect.changePrecededBy<Note>(
      {
        onlyIf: sql`select 1 from gardens`,
        build: p =>
          sql`insert into gardens select ${sql.join(names.map(name => p(name)))}`,
      },
      { of: 'notes', by: 'id' },
      p => sql`insert into notes select ${p('id')}, ${p('text')}, ${p('topic')}`,
    )

  const { preceding } = insertAfter('id', 'text', 'topic')

  expect(preceding).toEqual({
    onlyIf: 'select 1 from gardens',
    sql: 'insert into gardens select ?, ?, ?',
  })
  expect(() => insertAfter('text', 'id', 'topic')).toThrow('both take the same values')
})

import {
  compileEntities,
  type Parameter,
  postgresDialect,
  sqliteDialect,
} from '@plant-store/engine'
import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { valuesOf } from '../src/statements/statement.ts'
import { entities, type Note, statementsOf, type Tables } from './notes.ts'

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

  test('a statement without parameters has no values', () => {
    expect(valuesOf(statementsOf('notes', dialect).clear, {})).toEqual([])
  })

  test('SQL has no margins from its place in the source', () => {
    const { sql: text } = dialect.read(
      () => sql`
        select 1,
          2`,
    )

    expect(text).toBe('select 1,\n2')
  })

  test('a constant that is neither parameter nor literal is refused', () => {
    const read = () =>
      dialect.read(() => db.selectFrom('notes').select('id').where('text', '=', 'a'))

    expect(read).toThrow(/^a constant must be written with sql.lit: a in select /)
  })
})

test('each statement has a name: that of its entity and its own', () => {
  const names = [...compileEntities(entities, sqliteDialect).names.values()]

  expect(names).toEqual([
    'notes.find',
    'notes.page',
    'notes.insert',
    'notes.save',
    'notes.remove',
    'notes.clear',
    'gardens.find',
    'gardens.page',
    'gardens.insert',
    'gardens.save',
    'gardens.remove',
    'gardens.clear',
    'store.probeRead',
    'store.probeWrite',
  ])
})

test('a statement that precedes an insert must take the same values', () => {
  const insertAfter = (...names: (keyof Note)[]) =>
    statementsOf('notes', sqliteDialect, {
      onlyIf: sql`select 1 from gardens`,
      build: p => sql`insert into gardens select ${sql.join(names.map(name => p(name)))}`,
    }).insert

  const { preceding } = insertAfter('id', 'text', 'topic')

  expect(preceding).toEqual({
    onlyIf: 'select 1 from gardens',
    sql: 'insert into gardens select ?, ?, ?',
  })
  expect(() => insertAfter('text', 'id', 'topic')).toThrow('both take the same values')
})

import {
  compileEntities,
  type Parameters,
  postgresDialect,
  sqliteDialect,
  valuesOf,
} from '@plant-store/engine'
import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { entities, type Note, statementsOf, type Tables } from './notes.ts'

const dialects = [sqliteDialect, postgresDialect]

test('values are in the order of the placeholders, also those of a parameter that has several', () => {
  for (const on of dialects) {
    const db = on.tables<Tables>()
    const statement = on.change({ of: 'notes', by: 'id' }, (p: Parameters<Pick<Note, 'id' | 'text'>>) =>
      db
        .updateTable('notes')
        .set({ text: p.text })
        .where('id', '=', p.id)
        .where(({ or, eb }) => or([eb('text', '<', p.text), eb('topic', '=', sql.lit('no parameter'))])),
    )
    expect(statement.sql.match(/\?|\$\d/g)).toHaveLength(3)
    expect(valuesOf(statement, { id: 1n, text: 'a' })).toEqual(['a', 1n, 'a'])
    expect(valuesOf(statementsOf('notes', on).clear, {})).toEqual([])
  }
})

test('a constant that is no parameter and no literal is refused, as nobody would give its value', () => {
  for (const on of dialects) {
    const db = on.tables<Tables>()
    expect(() => on.read(() => db.selectFrom('notes').select('id').where('text', '=', 'a'))).toThrow(
      /^a constant must be written with sql.lit: a in select /,
    )
  }
})

test('each statement has the name of its entity and its own', () => {
  const names = [...compileEntities(entities, sqliteDialect).names.values()]
  const ofEach = ['find', 'page', 'insert', 'save', 'remove', 'clear']
  expect(names).toEqual([
    ...['notes', 'gardens'].flatMap(entity => ofEach.map(name => `${entity}.${name}`)),
    'store.read',
    'store.change',
  ])
})
